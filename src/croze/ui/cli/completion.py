"""`croze completion`: the script that lets a shell complete croze's commands and options."""

import click

from croze.ui.cli.framework import Command, Pick
from croze.ui.cli.main import COMPLETE
from croze.ui.cli.state import State, pass_state
from croze.ui.i18n import mark

SHELLS = ("bash", "zsh", "fish")


@click.command(
    cls=Command,
    name="completion",
    help=mark(
        "Print the completion script for bash, zsh or fish.\n\n"
        'bash: add `eval "$(croze completion bash)"` to ~/.bashrc. '
        'zsh: add `eval "$(croze completion zsh)"` to ~/.zshrc. '
        "fish: run `croze completion fish > ~/.config/fish/completions/croze.fish`."
    ),
)
@click.argument("shell", type=Pick(SHELLS))
@pass_state
def completion(state: State, shell: str) -> int:
    from click.shell_completion import ShellComplete, get_completion_class

    script = get_completion_class(shell)
    assert script is not None
    root = click.get_current_context().find_root().command
    complete = script(root, {}, "croze", COMPLETE)
    # The base class's method: bash's own would run bash to look at its version.
    state.out.raw(ShellComplete.source(complete).encode())
    return 0
