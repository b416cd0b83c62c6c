"""`croze demo`: a scripted model mends a real bug, to see what croze does without a key."""

import click

from croze.ui.cli.framework import Command, Pick
from croze.ui.cli.state import State, pass_state
from croze.ui.i18n import mark


@click.command(
    cls=Command,
    name="demo",
    help=mark(
        "Watch a scripted model mend a real bug, without a key and without a network.\n\n"
        "The tools, the sample project and its tests are real; everything happens in a scratch folder, "
        "where commands run unconfined. The exit code is 0 only if the tests are green at the end."
    ),
)
@click.option(
    "--dialect", type=Pick(("native", "xml")), default="native",
    help=mark("How the model writes tool calls."),
)  # fmt: skip
@click.option(
    "--keep", metavar="DIR",
    help=mark("Work in DIR, a new or empty folder, and leave project and session log there."),
)  # fmt: skip
@pass_state
def demo(state: State, dialect: str, keep: str | None) -> int:
    from croze.ui.demo.show import show

    return show(state, dialect="xml" if dialect == "xml" else "native", keep=keep)
