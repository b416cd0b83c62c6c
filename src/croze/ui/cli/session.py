"""`croze session`: list, show, search, move and remove conversations."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from croze.text.display import one_line
from croze.types.errors import UsageError
from croze.ui.cli.exits import Exit
from croze.ui.cli.framework import Command, LazyGroup, Number, Pick
from croze.ui.cli.listing import SHORT, named, row_of
from croze.ui.cli.output import columns, dollars, local_time, thousands
from croze.ui.cli.state import State, pass_state
from croze.ui.cli.transcript import write_transcript
from croze.ui.cli.with_app import with_app, write_json
from croze.ui.i18n import _, explain_code, mark

if TYPE_CHECKING:
    from croze.app.app import App


@click.group(
    cls=LazyGroup,
    name="session",
    help=mark(
        "Work with conversations: every one is kept, with all that was said and done. A command takes an "
        "id or the start of one."
    ),
)
def session() -> None:
    pass


_FORMAT = click.option(
    "--format", "form", type=Pick(("text", "json")), default="text", help=mark("How to print.")
)
_LIMIT = click.option(
    "--limit", "-n", type=Number(whole=True), default=20, help=mark("At most N of them.")
)
_ALL = click.option("--all", "everything", is_flag=True, help=mark("Sub-agents' too."))


@session.command("list", cls=Command, help=mark("List this project's conversations, newest first."))
@_LIMIT
@click.option(
    "--offset", type=click.IntRange(min=0), default=0, help=mark("Leave out the first N.")
)
@click.option("--namespace", metavar="NAME", help=mark("Only those kept under this name."))
@_ALL
@_FORMAT
@pass_state
def list_sessions(
    state: State, limit: float, offset: int, namespace: str | None, everything: bool, form: str
) -> int:
    found = with_app(
        state,
        lambda app: app.conversations.list(
            limit=int(limit), offset=offset, namespace=namespace, include_children=everything
        ),
    )
    if form == "json":
        return write_json(state, found)
    if not found:
        state.out.note(_("no conversations here yet"))
        return Exit.DONE
    state.out.table([row_of(summary) for summary in found])
    return Exit.DONE


@session.command("show", cls=Command, help=mark("Print a conversation."))
@click.argument("conversation")
@_FORMAT
@pass_state
def show(state: State, conversation: str, form: str) -> int:
    found = with_app(state, lambda app: app.conversations.get(conversation))
    if form == "json":
        return write_json(state, found)
    write_transcript(state.out, found)
    return Exit.DONE


@session.command("tree", cls=Command, help=mark("Show a conversation with its sub-agents."))
@click.argument("conversation")
@_FORMAT
@pass_state
def tree(state: State, conversation: str, form: str) -> int:
    from croze.app.family import family_of
    from croze.ui.team import family_lines

    found = with_app(state, lambda app: family_of(app, conversation))
    if form == "json":
        return write_json(state, found)
    for text in family_lines(found, columns()):
        state.out.line(text)
    return Exit.DONE


@session.command("plan", cls=Command, help=mark("Show the orchestrator's plan as it stands."))
@click.argument("conversation")
@_FORMAT
@pass_state
def plan(state: State, conversation: str, form: str) -> int:
    from croze.app.plans import plan_of
    from croze.ui.plan import heading, tree

    found = with_app(state, lambda app: plan_of(app, conversation))
    if form == "json":
        return write_json(state, found)
    state.out.line(heading(found.plan))
    spent = {child: (used.steps, used.cost) for child, used in found.workers.items()}
    for text, _style in tree(found.plan, spent):
        state.out.line(text)
    return Exit.DONE


@session.command(
    "search", cls=Command, help=mark("Find the messages that hold all of these words.")
)
@click.argument("words", nargs=-1, required=True)
@_LIMIT
@_ALL
@_FORMAT
@pass_state
def search(state: State, words: tuple[str, ...], limit: float, everything: bool, form: str) -> int:
    hits = with_app(
        state,
        lambda app: app.conversations.search(
            " ".join(words), limit=int(limit), include_children=everything
        ),
    )
    if form == "json":
        return write_json(state, hits)
    if not hits:
        state.out.note(_("nothing found"))
        return Exit.FAILED
    for hit in hits:
        where = (hit.session[:SHORT], local_time(hit.at), hit.role, named(hit.session, hit.name))
        state.out.line("  ".join(part for part in where if part))
        state.out.line(f"    {one_line(hit.snippet, 160)}")
    return Exit.DONE


@session.command(
    "fork",
    cls=Command,
    help=mark("Make a new conversation that shares this one's beginning; prints its id."),
)
@click.argument("conversation")
@click.option("--at", "message", metavar="MESSAGE", help=mark("The last message to take over."))
@click.option("--name", help=mark("The new conversation's name."))
@pass_state
def fork(state: State, conversation: str, message: str | None, name: str | None) -> int:
    made = with_app(state, lambda app: app.conversations.fork(conversation, message, name=name))
    state.out.line(made.id)
    return Exit.DONE


@session.command("rename", cls=Command, help=mark("Give a conversation another name."))
@click.argument("conversation")
@click.argument("name")
@pass_state
def rename(state: State, conversation: str, name: str) -> int:
    if not name.strip():
        raise UsageError(
            _("a name can't be empty"), hint=_("give at least one character"), code="empty_name"
        )
    with_app(state, lambda app: app.conversations.rename(conversation, name.strip()))
    return Exit.DONE


@session.command(
    "delete",
    cls=Command,
    help=mark(
        "Remove a conversation for good, with what its sub-agents said. Backups keep theirs."
    ),
)
@click.argument("conversations", nargs=-1, required=True)
@click.option("--yes", "-y", is_flag=True, help=mark("Don't ask."))
@pass_state
def delete(state: State, conversations: tuple[str, ...], yes: bool) -> int:
    async def work(app: "App") -> int:
        for wanted in conversations:
            found = await app.conversations.get(wanted)
            title = f"{found.id[:SHORT]} {one_line(found.name, 60)}"
            if not yes and not _confirmed(state, _("remove {title} for good?", title=title)):
                state.out.note(_("kept: {title}", title=title))
                return Exit.FAILED
            await app.conversations.delete(found.id)
            state.out.note(_("removed: {title}", title=title))
        return Exit.DONE

    return with_app(state, work)


def _confirmed(state: State, question: str) -> bool:
    """Ask on the terminal; without one the answer must be given beforehand."""
    import sys

    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(
            _("nobody is here to confirm this"), hint=_("add --yes"), code="needs_confirmation"
        )
    state.out.note(f"{question} [y/N] ", end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes", "是")


@session.command(
    "export",
    cls=Command,
    help=mark(
        "Write a conversation to a file, or with --all every one into a folder. The default is JSON; "
        "a file that ends in .jsonl gets every event, enough to replay it elsewhere."
    ),
)
@click.argument("target", nargs=-1, required=True, metavar="[CONVERSATION] PATH")
@click.option("--all", "everything", is_flag=True, help=mark("Every conversation of this project."))
@pass_state
def export(state: State, target: tuple[str, ...], everything: bool) -> int:
    if len(target) != (1 if everything else 2):
        raise UsageError(
            _("name one conversation and a file, or say --all and a folder"),
            hint=_("croze session export ID FILE, or croze session export --all FOLDER"),
            code="export_what",
        )
    path = Path(target[-1])

    async def work(app: "App") -> int:
        from croze.app.transfer import export_all, export_session

        if everything:
            count = await export_all(app, path)
            state.out.note(_("{count} conversations written to {path}", count=count, path=path))
        else:
            form: Literal["json", "events"] = "events" if path.suffix == ".jsonl" else "json"
            found = await export_session(app, target[0], path, form)
            state.out.note(_("{id} written to {path}", id=found[:SHORT], path=path))
        return Exit.DONE

    return with_app(state, work)


@session.command(
    "import",
    cls=Command,
    help=mark(
        "Take in a conversation's file (.json or .jsonl) or a folder of them; prints the new ids."
    ),
)
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--new-id", is_flag=True, help=mark("Give it another id than the file's."))
@pass_state
def import_(state: State, path: Path, new_id: bool) -> int:
    async def work(app: "App") -> int:
        from croze.app.transfer import import_path

        ids, problems = await import_path(app, path, new_id=new_id)
        for taken in ids:
            state.out.line(taken)
        for problem in problems:
            state.out.note(
                f"croze: {explain_code(problem.code, problem.text, '', problem.params)[0]}"
            )
        return Exit.FAILED if problems else Exit.DONE

    return with_app(state, work)


@session.command("backup", cls=Command, help=mark("Back up this project's conversations now."))
@click.option("--list", "show_list", is_flag=True, help=mark("Show the backups that there are."))
@pass_state
def backup(state: State, show_list: bool) -> int:
    async def work(app: "App") -> int:
        from croze.app.transfer import back_up, backups

        if not show_list:
            state.out.line(str(await back_up(app)))
            return Exit.DONE
        rows = [(b.name, local_time(b.at), f"{b.size / 1e6:.1f} MB") for b in backups(app)]
        if rows:
            state.out.table(rows)
        else:
            state.out.note(_("no backups here yet"))
        return Exit.DONE

    return with_app(state, work)


@session.command(
    "restore",
    cls=Command,
    help=mark(
        "Put a backup in the place of this project's conversations: the newest good one, or the one that "
        "you name. What stood there is kept beside it."
    ),
)
@click.argument("name", default="")
@click.option("--yes", "-y", is_flag=True, help=mark("Don't ask."))
@pass_state
def restore(state: State, name: str, yes: bool) -> int:
    from croze.app.transfer import restore as put_back

    app = state.open()
    if not yes and not _confirmed(state, _("replace this project's conversations by a backup?")):
        return Exit.FAILED
    used, aside = put_back(app, name)
    state.out.note(_("restored {name}", name=used))
    if aside is not None:
        state.out.note(_("what was there before is kept in {path}", path=aside))
    return Exit.DONE


@session.command("stats", cls=Command, help=mark("Totals of this project's conversations."))
@_ALL
@_FORMAT
@pass_state
def stats(state: State, everything: bool, form: str) -> int:
    found = with_app(state, lambda app: app.conversations.stats(include_children=everything))
    if form == "json":
        return write_json(state, found)
    rows = [
        (_("conversations"), str(found.conversations)),
        (_("namespaces"), str(found.namespaces)),
        (_("messages"), str(found.messages)),
        (_("input tokens"), thousands(found.input_tokens)),
        (_("of these cached"), thousands(found.cached_tokens)),
        (_("output tokens"), thousands(found.output_tokens)),
        (_("cost"), dollars(found.cost)),
        (_("replies of unknown price"), str(found.unpriced)),
        (_("size on disk"), f"{found.bytes / 1e6:.1f} MB"),
        (_("cache hits / misses"), f"{found.cache_hits} / {found.cache_misses}"),
    ]
    state.out.table(rows)
    if found.tools:
        state.out.line()
        ranked = sorted(found.tools.items(), key=lambda item: (-item[1], item[0]))
        state.out.table([(name, str(count)) for name, count in ranked])
    return Exit.DONE
