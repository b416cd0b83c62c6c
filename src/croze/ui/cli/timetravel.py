"""`croze undo`, `redo`, `diff`, `checkpoints` and `commit`: back, forth, what has changed, and keeping it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from croze.text.display import one_line
from croze.types.errors import UsageError
from croze.types.tool import FileChange
from croze.ui.cli.exits import Exit
from croze.ui.cli.framework import Command, Number, Pick
from croze.ui.cli.output import local_time
from croze.ui.cli.state import State, pass_state
from croze.ui.cli.with_app import with_app, write_json
from croze.ui.i18n import _, mark

if TYPE_CHECKING:
    from croze.app.app import App
    from croze.app.timetravel import Checkpoint, UndoReport

SIGNS = {"added": "A", "modified": "M", "deleted": "D", "moved": "R"}

_SESSION = click.argument("conversation", required=False)
_FORMAT = click.option(
    "--format", "form", type=Pick(("text", "json")), default="text", help=mark("How to print.")
)
_TURN = click.option("--turn", type=Number(whole=True), help=mark("Only what turn N changed."))


@click.command(
    "undo",
    cls=Command,
    help=mark(
        "Take back the last turn of a conversation: its changes of files, what was said, and the todo list. "
        "Nothing is touched where a file has changed since; `croze redo` brings everything back."
    ),
)
@_SESSION
@click.option(
    "--turns", "-n", type=Number(whole=True), default=1, help=mark("Take back the last N turns.")
)
@click.option("--call", metavar="ID", help=mark("Take back only the files that one call changed."))
@click.option(
    "--files-only", is_flag=True, help=mark("Take back only files; the conversation stays.")
)
@_FORMAT
@pass_state
def undo(
    state: State,
    conversation: str | None,
    turns: float,
    call: str | None,
    files_only: bool,
    form: str,
) -> int:
    if call is not None and turns != 1:
        raise UsageError(
            _("--call and --turns exclude each other"),
            hint=_("name one call, or count turns"),
            code="call_or_turns",
        )

    async def work(app: "App") -> "UndoReport":
        from croze.app.timetravel import undo

        return await undo(app, conversation, turns=int(turns), call=call, files_only=files_only)

    return _tell(state, with_app(state, work), form)


@click.command("redo", cls=Command, help=mark("Bring back what was undone last."))
@_SESSION
@_FORMAT
@pass_state
def redo(state: State, conversation: str | None, form: str) -> int:
    async def work(app: "App") -> "UndoReport":
        from croze.app.timetravel import redo

        return await redo(app, conversation)

    return _tell(state, with_app(state, work), form)


def _tell(state: State, report: "UndoReport", form: str) -> int:
    if form == "json":
        return write_json(state, report)
    out = state.out
    if report.completed:
        out.note(_("an interrupted undo was brought to its end; this is what it did:"))
    turns = ", ".join(map(str, report.turns))
    if report.kind == "redo":
        out.line(_("redone: turn {turns}", turns=turns))
    else:
        out.line(_("undone: turn {turns}", turns=turns))
    _list(state, report.files)
    if not report.conversation:
        out.note(_("the conversation stays as it is"))
    for path in report.lost:
        out.note(_("not restorable: {path} (nobody has its old content)", path=path))
    for path in report.left:
        out.note(_("left alone: {path} has changed since the interruption", path=path))
    if report.kind == "undo":
        out.note(_("`croze redo {id}` brings it back", id=report.session[:8]))
    return Exit.DONE


def _list(state: State, changes: Sequence[FileChange]) -> None:
    for change in changes:
        name = f"{change.moved_from} → {change.path}" if change.moved_from else change.path
        state.out.line(f"  {SIGNS[change.kind]} {one_line(name, 200)}")


@click.command(
    "diff",
    cls=Command,
    help=mark(
        "Show what a conversation has changed, summed up against its beginning; what was undone is left out."
    ),
)
@_SESSION
@_TURN
@click.option("--call", metavar="ID", help=mark("Only what one call changed."))
@click.option("--stat", is_flag=True, help=mark("Only the files and their lines."))
@_FORMAT
@pass_state
def diff(
    state: State,
    conversation: str | None,
    turn: float | None,
    call: str | None,
    stat: bool,
    form: str,
) -> int:
    async def work(app: "App") -> Sequence[FileChange]:
        from croze.app.timetravel import diff

        return await diff(app, conversation, turn=None if turn is None else int(turn), call=call)

    changes = with_app(state, work)
    if form == "json":
        return write_json(state, changes)
    if not changes:
        state.out.note(_("no changes"))
        return Exit.DONE
    if stat:
        _stat(state, changes)
        return Exit.DONE
    for change in changes:
        for line in _heading(change):
            state.out.line(line)
        if change.diff:
            state.out.line(change.diff.rstrip("\n"))
    return Exit.DONE


def _stat(state: State, changes: Sequence[FileChange]) -> None:
    rows = []
    for change in changes:
        name = f"{change.moved_from} → {change.path}" if change.moved_from else change.path
        note = _("not restorable") if change.lost else ""
        rows.append((SIGNS[change.kind], f"+{change.added}", f"-{change.removed}", name, note))
    state.out.table(rows)


def _heading(change: FileChange) -> list[str]:
    """What a diff's lines don't say: moves, modes, what is no text."""
    lines = []
    if change.moved_from:
        lines += [f"rename from {change.moved_from}", f"rename to {change.path}"]
    modes = change.mode_before, change.mode_after
    if None not in modes and modes[0] != modes[1]:
        lines += [f"old mode {modes[0]:o}", f"new mode {modes[1]:o}"]
    if change.lost:
        lines.append(_("{path}: changed by a command, not restorable", path=change.path))
    elif not change.diff and change.before != change.after:
        lines.append(_("{path}: {kind}, no text to show", path=change.path, kind=change.kind))
    elif not change.diff and lines:
        lines.insert(0, change.path)
    return lines


@click.command(
    "checkpoints",
    cls=Command,
    help=mark(
        "List a conversation's turns, with the files that each changed: where undo can go back to."
    ),
)
@_SESSION
@click.option("--calls", is_flag=True, help=mark("Every call that changed files, too."))
@_FORMAT
@pass_state
def checkpoints(state: State, conversation: str | None, calls: bool, form: str) -> int:
    async def work(app: "App") -> "Sequence[Checkpoint]":
        from croze.app.timetravel import checkpoints

        return await checkpoints(app, conversation)

    found = with_app(state, work)
    if form == "json":
        return write_json(state, found)
    if not found:
        state.out.note(_("this conversation has no turns yet"))
        return Exit.DONE
    rows = []
    for point in found:
        held = _("undone") if point.undone else _("files undone") if point.files_undone else ""
        rows.append(
            (
                str(point.turn),
                local_time(point.at),
                _("{count} files", count=point.files),
                f"+{point.added} -{point.removed}",
                held,
                one_line(point.title, 60),
            )
        )
        for call in point.calls if calls else ():
            paths = one_line(", ".join(call.paths), 60)
            held = _("undone") if call.undone else ""
            rows.append(
                ("", call.call_id, call.tool, f"+{call.added} -{call.removed}", held, paths)
            )
    state.out.table(rows)
    return Exit.DONE


@click.command(
    "commit",
    cls=Command,
    help=mark(
        "Make one git commit of the files that a conversation has changed, as they stand. Other dirty files "
        "stay out, and files that hold changes of yours refuse it. Your index, stashes and configuration stay "
        "as they are; hooks don't run and nothing is signed."
    ),
)
@_SESSION
@click.option("--message", "-m", metavar="TEXT", help=mark("The commit's message."))
@_TURN
@click.option("--last", is_flag=True, help=mark("Only what the last turn with changes changed."))
@click.option(
    "--all", "everything", is_flag=True,
    help=mark("Take files with your own changes in, too."),
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help=mark("Only show what would be committed."))
@_FORMAT
@pass_state
def commit(
    state: State,
    conversation: str | None,
    message: str | None,
    turn: float | None,
    last: bool,
    everything: bool,
    dry_run: bool,
    form: str,
) -> int:
    from croze.app.commit import CommitReport

    async def work(app: "App") -> CommitReport:
        from croze.app.commit import commit

        return await commit(
            app,
            conversation,
            turn=None if turn is None else int(turn),
            last=last,
            message=message,
            everything=everything,
            dry_run=dry_run,
        )

    report = with_app(state, work)
    if form == "json":
        return write_json(state, report)
    out = state.out
    if report.problem:
        out.note(_("the model wrote no message ({reason})", reason=report.problem))
    for path, why in report.left_out.items():
        if why == "ignored":
            out.note(_("left out: {path} (git ignores it)", path=path))
        else:
            out.note(_("left out: {path} (git has a filter program for it)", path=path))
    if report.commit:
        out.line(f"{report.commit[:12]} {report.message.partition(chr(10))[0]}")
    else:
        out.line(report.message.rstrip("\n"))
    for path in report.files:
        out.line(f"  {path}")
    return Exit.DONE
