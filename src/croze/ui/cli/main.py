"""The `croze` program: from an argument list to an exit code."""

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from croze.ui.cli.collector import at_start

if TYPE_CHECKING:
    from croze.ui.cli.state import State

COMPLETE = "_CROZE_COMPLETE"
USAGE, FAILED, INTERRUPTED, PIPE_CLOSED = 2, 1, 130, 141


def main(argv: Sequence[str] | None = None, *, state: "State | None" = None) -> int:
    """Run `croze` with these arguments; gives the exit code and never raises for expected failures."""
    args = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _version() if args in (["--version"], ["-V"]) else _command(args, state)
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        from croze.ui.cli.output import drop_stdout

        drop_stdout()
        return PIPE_CLOSED
    except OSError as error:
        from croze.ui.cli.output import Output, drop_stdout

        drop_stdout()
        Output().error(f"the output can't be written: {error.strerror}")
        return FAILED
    return code


def program() -> None:
    """The console script. Everything is written and closed when `main` returns; the interpreter's own
    end, some 30 ms of freeing memory, is left to the operating system."""
    at_start()
    code = main()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


def _version() -> int:
    from croze import __version__

    sys.stdout.write(f"croze {__version__}\n")
    return 0


def _command(args: list[str], state: "State | None") -> int:
    from croze.types.errors import UsageError
    from croze.ui.cli.output import Output
    from croze.ui.cli.state import State
    from croze.ui.i18n import use_language

    use_language(_language(os.environ if state is None else state.env))
    try:
        state = state or State.of_process()
    except UsageError as error:
        if not {"--help", "-h"} & set(args):
            Output().error(error.message, error.hint)
            return USAGE
        state = State(env=os.environ, cwd=Path("/"))
    return _invoke(args, state)


def _invoke(args: list[str], state: "State") -> int:
    import click

    from croze.types.errors import CrozeError
    from croze.ui.cli.framework import explain_click
    from croze.ui.cli.root import cli
    from croze.ui.i18n import explain

    try:
        if COMPLETE in state.env:
            cli.main(args, prog_name="croze", complete_var=COMPLETE)
        # Not `cli.main`: it ends the process itself where the output is closed.
        with cli.make_context("croze", as_run(args), obj=state) as context:
            code = cli.invoke(context)
    except click.exceptions.Exit as leave:
        return int(leave.exit_code)
    except CrozeError as error:
        from croze.ui.cli.exits import exit_of_error

        state.out.error(*explain(error))
        return int(exit_of_error(error))
    except click.exceptions.NoArgsIsHelpError as error:
        state.out.note(error.format_message())
        return USAGE
    except click.UsageError as error:
        state.out.error(*explain_click(error))
        return USAGE
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - a front end's top level: nothing may end in a traceback
        from croze.ui.cli.crash import report_crash

        return report_crash(error, state, verbose="--verbose" in args or "-v" in args)
    return int(code or 0)


def as_run(args: list[str]) -> list[str]:
    """`croze -p "task" …` is `croze run … -- "task"`: what follows `-p` is the task, whatever it looks
    like, so text from outside can't become an option."""
    if not args or not args[0].startswith("-"):
        return args
    at = next((i for i, arg in enumerate(args) if arg in ("-p", "--print", "--prompt", "--")), None)
    if at is None or args[at] == "--":
        return args
    task = args[at + 1 : at + 2]
    return ["run", *args[:at], *args[at + 2 :], "--", *task]


def _language(env: Mapping[str, str]) -> str:
    """The language to speak. Reads [ui] language on its own: help must not load the configuration."""
    from croze.app.paths import Paths
    from croze.ui.i18n import choose_language

    configured = env.get("CROZE_UI__LANGUAGE", "")
    path = Paths.of(env).config_file
    if not configured and os.path.isfile(path):
        import tomllib

        try:
            section = tomllib.loads(path.read_text("utf-8")).get("ui")
        except (OSError, ValueError):
            section = None
        if isinstance(section, dict):
            configured = str(section.get("language", ""))
    return choose_language(configured, env)
