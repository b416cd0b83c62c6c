"""`croze lib`: documentation of libraries that agents are to know: adding, removing, fetching, reading it."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

import click

from croze.text.display import one_line
from croze.types.errors import CrozeError
from croze.ui.cli.exits import Exit
from croze.ui.cli.framework import Command, LazyGroup
from croze.ui.cli.output import columns, thousands
from croze.ui.cli.state import State, pass_state
from croze.ui.cli.with_app import write_json
from croze.ui.i18n import _, explain, mark

if TYPE_CHECKING:
    from croze.knowledge.libraries import Libraries
    from croze.knowledge.library_repository import Snapshot

_JSON = click.option("--json", "as_json", is_flag=True, help=mark("Print values for programs."))


@click.group(
    cls=LazyGroup,
    name="lib",
    help=mark(
        "Documentation of libraries, told to agents that work in this project.\n\n"
        "It comes from a git repository of such documentation, by the library's name (lib or user/lib), or "
        "from the package as it is installed for this project: python:NAME, npm:NAME. Only libraries that "
        "you add are told."
    ),
)
def lib() -> None:
    pass


def _open(state: State) -> "tuple[Libraries, str]":
    from croze.app.libraries import open_libraries

    app = state.open()
    return open_libraries(app.config, app.env), app.config.settings.knowledge.library_repository


@contextmanager
def _progress(state: State) -> Iterator[Callable[[str], None]]:
    """Shows lines that take each other's place on a terminal; elsewhere nothing."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    shown = False

    def show(line: str) -> None:
        nonlocal shown
        if terminal:
            # `safe` takes carriage returns away: this one is ours.
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            state.out.note(one_line(line, columns() - 1), end="")
            shown = True

    try:
        yield show
    finally:
        if shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


@lib.command(
    "add",
    cls=Command,
    help=mark(
        "Add a library's documentation to this project. The first time the repository is fetched.\n\n"
        "Examples: croze lib add byzerllm; croze lib add python:requests; croze lib add npm:preact"
    ),
)
@click.argument("name")
@pass_state
def add(state: State, name: str) -> int:
    from croze.app import libraries as work

    libraries, url = _open(state)
    with _progress(state) as show:
        added, failed = asyncio.run(work.add(libraries, name, url, show))
    if failed is not None:
        text, _hint = explain(failed)
        state.out.note(_("croze: {text}; the installed package was taken", text=text))
    found = libraries.documents(added.name)
    state.out.note(
        _(
            "{library}: added; {count} documents, about {tokens} tokens",
            library=added.name,
            count=len(found),
            tokens=thousands(sum(document.tokens for document in found)),
        )
    )
    return Exit.DONE


@lib.command("remove", cls=Command, help=mark("Take a library off this project's list."))
@click.argument("name")
@pass_state
def remove(state: State, name: str) -> int:
    libraries, _url = _open(state)
    state.out.note(_("{library}: removed", library=libraries.remove(name).name))
    return Exit.DONE


@lib.command(
    "list",
    cls=Command,
    help=mark("List the libraries of this project, or all of the repository's with --all."),
)
@click.option("--all", "everything", is_flag=True, help=mark("All that the repository has."))
@_JSON
@pass_state
def list_libraries(state: State, everything: bool, as_json: bool) -> int:
    import msgspec

    from croze.app.libraries import rows

    libraries, _url = _open(state)
    if everything:
        names = libraries.repository.libraries()
        if as_json:
            return write_json(state, names)
        for name in names:
            state.out.line(name)
        if not names:
            state.out.note(_("nothing has been fetched; `croze lib refresh` does it"))
        return Exit.DONE
    found = rows(libraries)
    if as_json:
        return write_json(state, [msgspec.to_builtins(row) for row in found])
    if not found:
        state.out.note(_("no library is added; `croze lib add NAME` adds one"))
        return Exit.DONE
    table = []
    for row in found:
        version = row.installed
        if row.version != row.installed:
            version = _("{now}, was {before}", now=row.installed or _("gone"), before=row.version)
        count = _("{count} documents", count=row.documents) if row.documents else _("not there")
        tokens = _("{count} tokens", count=thousands(row.tokens)) if row.tokens else ""
        table.append((row.name, version, count, tokens))
    state.out.table(table)
    return Exit.DONE


@lib.command("refresh", cls=Command, help=mark("Fetch the newest documentation."))
@_JSON
@pass_state
def refresh(state: State, as_json: bool) -> int:
    import msgspec

    from croze.app import libraries as work

    libraries, url = _open(state)
    with _progress(state) as show:
        snapshot, changed = asyncio.run(work.refresh(libraries, url, show))
    if as_json:
        return write_json(state, {**msgspec.to_builtins(snapshot), "changed": changed})
    if not changed:
        state.out.note(_("the documentation is up to date: {about}", about=_about(snapshot)))
        return Exit.DONE
    state.out.note(_("fetched {about}", about=_about(snapshot)))
    words = _left_out_words()
    for reason, count in snapshot.left_out.items():
        text = _("{count} left out: {reason}", count=count, reason=words.get(reason, reason))
        state.out.note(text)
    return Exit.DONE


def _about(snapshot: "Snapshot") -> str:
    when = datetime.fromtimestamp(snapshot.fetched_at).astimezone()
    return _(
        "{files} documents of {url}, commit {commit}, {when}",
        files=snapshot.files,
        url=snapshot.url,
        commit=snapshot.commit[:12],
        when=when.strftime("%Y-%m-%d %H:%M"),
    )


def _left_out_words() -> dict[str, str]:
    return {
        "links and submodules": _("links and submodules"),
        "names that can't be used": _("names that can't be used"),
        "files that are too large": _("files that are too large"),
        "more than is kept": _("more than is kept"),
        "files that can't be read": _("files that can't be read"),
    }


@lib.command(
    "proxy",
    cls=Command,
    help=mark(
        "Show where the documentation is fetched from, or take it from another address from now on; "
        "`croze lib refresh` then fetches it."
    ),
)
@click.argument("url", required=False)
@pass_state
def proxy(state: State, url: str | None) -> int:
    from croze.app.libraries import set_url

    app = state.open()
    if url is None:
        state.out.line(app.config.settings.knowledge.library_repository)
        return Exit.DONE
    address = set_url(app.config, url)
    state.out.note(_("documentation comes from {url}; `croze lib refresh` fetches it", url=address))
    return Exit.DONE


@lib.command(
    "get",
    cls=Command,
    help=mark(
        "Print the documents of a library, sorted by path, or of all that are added. A document's own name "
        "prints only that."
    ),
)
@click.argument("name", default="")
@click.option("--paths", is_flag=True, help=mark("Print only where they lie."))
@_JSON
@pass_state
def get(state: State, name: str, paths: bool, as_json: bool) -> int:
    import msgspec

    from croze.app.libraries import documents_of

    libraries, _url = _open(state)
    found = sorted(documents_of(libraries, name), key=lambda document: document.name)
    if as_json:
        kept = (
            ("name", "library", "file", "tokens")
            if paths
            else ("name", "library", "file", "tokens", "text")
        )
        rows = [{key: msgspec.structs.asdict(each)[key] for key in kept} for each in found]
        return write_json(state, rows)
    if not found:
        raise CrozeError(
            _("there is no documentation"),
            hint=_("`croze lib add NAME` adds a library"),
            code="library_none",
        )
    for each in found:
        if paths:
            state.out.line(each.file or each.name)
        else:
            state.out.line(f"<!-- {each.name} -->\n\n{each.text.strip()}\n")
    return Exit.DONE
