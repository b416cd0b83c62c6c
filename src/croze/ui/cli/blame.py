"""`croze blame`: who wrote each line of a file."""

from typing import TYPE_CHECKING

import click

from croze.text.display import one_line, safe
from croze.ui.cli.exits import Exit
from croze.ui.cli.framework import Command
from croze.ui.cli.output import cells, local_time
from croze.ui.cli.state import State, pass_state
from croze.ui.cli.with_app import with_app, write_json
from croze.ui.i18n import _, mark

if TYPE_CHECKING:
    from croze.app.app import App
    from croze.app.blame import Blame
    from croze.app.blame_fold import Origin

_WIDTH = 24
"""Cells of an agent's or an author's name."""


@click.command(
    "blame",
    cls=Command,
    help=mark(
        "Show which conversation, agent and turn wrote each line of a file as it is now.\n\n"
        "Lines that croze did not write are git's: the commit and its author. `you` is somebody outside of "
        "croze, not committed yet; `-` is where nobody knows."
    ),
)
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help=mark("Print one JSON object."))
@pass_state
def blame(state: State, file: str, as_json: bool) -> int:
    async def work(app: "App") -> "Blame":
        from croze.app.blame import blame

        return await blame(app, file, state.cwd)

    found = with_app(state, work)
    if as_json:
        return write_json(state, found)
    if not found.lines:
        state.out.note(_("the file is empty"))
        return Exit.DONE
    told: dict[Origin, tuple[str, ...]] = {}
    for line in found.lines:
        if line.origin not in told:
            told[line.origin] = _columns(line.origin)
    widths = [max(map(cells, column)) for column in zip(*told.values(), strict=True)]
    heads = {
        origin: "  ".join(
            cell + " " * (width - cells(cell)) for cell, width in zip(row, widths, strict=True)
        )
        for origin, row in told.items()
    }
    digits = len(str(len(found.lines)))
    state.out.line(
        "\n".join(
            f"{heads[line.origin]}  {line.line:>{digits}}  "
            f"{safe(line.text, keep_newlines=False)}".rstrip()
            for line in found.lines
        )
    )
    return Exit.DONE


def _columns(origin: "Origin") -> tuple[str, str, str, str]:
    """Which session or commit, who, where in the session, when."""
    when = "" if origin.at is None else local_time(origin.at)
    if origin.by == "croze":
        turn = _("turn {number}", number=origin.turn) if origin.turn else ""
        where = " ".join(filter(None, (turn, origin.tool)))
        return origin.session[:8], one_line(origin.agent, _WIDTH), one_line(where, 40), when
    if origin.by == "git":
        return origin.commit[:8], one_line(origin.author, _WIDTH), "", when
    return (_("you") if origin.by == "you" else "-"), "", "", ""
