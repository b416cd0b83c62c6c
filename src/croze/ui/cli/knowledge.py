"""`croze knowledge`: every file that could tell an agent something, and what became of it."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from croze.app.audit import AUDITS, as_values, audit
from croze.text.display import safe
from croze.ui.cli.exits import Exit
from croze.ui.cli.framework import Command, Pick
from croze.ui.cli.output import thousands
from croze.ui.cli.state import State, pass_state
from croze.ui.cli.with_app import write_json
from croze.ui.findings import because, states
from croze.ui.i18n import _, mark

if TYPE_CHECKING:
    from croze.knowledge.find import Found


@click.command(
    "knowledge",
    cls=Command,
    help=mark(
        "Show every file of the project's and yours that could tell an agent something: which of them are "
        "loaded, cut, shadowed by another, not trusted or not usable, and why.\n\n"
        "Example: croze knowledge --kind agents"
    ),
)
@click.option("--kind", type=Pick(tuple(AUDITS)), help=mark("Only files of this kind."))
@click.option("--json", "as_json", is_flag=True, help=mark("Print values for programs."))
@pass_state
def knowledge(state: State, kind: str | None, as_json: bool) -> int:
    app = state.open()
    found = audit(app.config, app.env, kind or "")
    if as_json:
        return write_json(state, [as_values(each) for each in found])
    if not found:
        state.out.note(_("there are no such files"))
        return Exit.DONE
    for each_kind in dict.fromkeys(each.kind for each in found):
        of_kind = [each for each in found if each.kind == each_kind]
        state.out.line(f"{each_kind}:")
        state.out.table(file_rows(of_kind, app.env))
    state.out.line(_totals(found, states()))
    return Exit.DONE


def file_rows(found: "Sequence[Found]", env: Mapping[str, str]) -> list[tuple[str, ...]]:
    """A row a file, as a table."""
    names = states()
    return [_row(each, names, env.get("HOME", "")) for each in found]


def _row(found: "Found", names: dict[str, str], home: str) -> tuple[str, ...]:
    path = found.path
    if home and path.startswith(home.rstrip(os.sep) + os.sep):
        path = f"~{path[len(home.rstrip(os.sep)) :]}"
    tokens = _("{count} tokens", count=thousands(found.tokens)) if found.tokens else ""
    size = _("{count} bytes", count=thousands(found.size)) if found.size else ""
    return (
        f"  {names[found.state]}",
        safe(found.name),
        safe(path),
        size,
        tokens,
        because(found.reason),
    )


def _totals(found: "list[Found]", names: dict[str, str]) -> str:
    counts = {state: sum(each.state == state for each in found) for state in names}
    said = ", ".join(f"{names[state]} {count}" for state, count in counts.items() if count)
    tokens = sum(each.tokens for each in found if each.acts)
    return _("{counts}; about {tokens} tokens are used", counts=said, tokens=thousands(tokens))
