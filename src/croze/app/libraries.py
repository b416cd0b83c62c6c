"""Library documentation as it is wired here: where it is kept, and the work of `croze lib`."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from croze.app.config import Config
from croze.app.knowledge import libraries_file
from croze.knowledge.find import Found
from croze.knowledge.libraries import (
    Added,
    Document,
    Libraries,
    ambiguous,
    document_named,
    is_package,
    one_of,
)
from croze.knowledge.library_repository import Snapshot, checked_url
from croze.knowledge.package_docs import site_packages
from croze.types.errors import CrozeError, UsageError
from croze.types.event import FactAdded, ModelCalled, Undone

if TYPE_CHECKING:
    from croze.app.app import App, Session

URL_KEY = "knowledge.library_repository"

Progress = Callable[[str], None]


class Row(Struct, frozen=True, omit_defaults=True):
    """One added library as it stands: `installed` is a package's version now."""

    name: str
    documents: int
    tokens: int
    version: str = ""
    installed: str = ""


def open_libraries(config: Config, env: Mapping[str, str]) -> Libraries:
    """The libraries of this project."""
    return Libraries(
        cache=config.paths.cache / "libraries",
        listed=libraries_file(config),
        root=config.project.root,
        env=env,
    )


def rows(libraries: Libraries) -> list[Row]:
    found = []
    for each in libraries.added():
        documents = libraries.documents(each.name)
        package = libraries.package(each.name)
        found.append(
            Row(
                name=each.name,
                documents=len(documents),
                tokens=sum(document.tokens for document in documents),
                version=each.version,
                installed="" if package is None else package.version,
            )
        )
    return found


async def add(
    libraries: Libraries, name: str, url: str, on_progress: Progress
) -> tuple[Added, CrozeError | None]:
    """Add a library by name, fetching the repository where it isn't there yet. A bare name is looked for in
    the repository, then among the installed packages. Gives why the repository could not be reached,
    where the name is an installed package all the same. Raises CrozeError."""
    if is_package(name):
        if libraries.package(name) is None:
            raise _not_installed(libraries, name)
        return libraries.add(name), None
    failed = None
    if libraries.repository.snapshot() is None:
        try:
            await libraries.repository.fetch(url, on_progress)
        except UsageError:
            raise
        except CrozeError as error:
            failed = error
    found = libraries.known(name) or libraries.installed(name)
    if failed is not None and not found:
        raise failed
    if len(found) > 1 and name not in found:
        raise ambiguous(name, found)
    whole = name if name in found else next(iter(found), "")
    return libraries.add(whole or one_of(name, libraries.repository.libraries(), "known")), failed


async def refresh(libraries: Libraries, url: str, on_progress: Progress) -> tuple[Snapshot, bool]:
    """Fetch the repository's newest state, from where it is now."""
    libraries.renewed()
    return await libraries.repository.fetch(url, on_progress)


def documents_of(libraries: Libraries, name: str) -> list[Document]:
    """The documents of a library: one that is added, else any that there is. With no name those of all
    that are added. Raises CrozeError."""
    if not name:
        return libraries.all_documents()
    added = [each.name for each in libraries.added()]
    known = [*libraries.known(name), *libraries.installed(name)]
    if is_package(name) and libraries.package(name) is not None:
        known.append(name)
    candidates = list(dict.fromkeys([*added, *known]))
    mine = [each for each in added if each == name or each.endswith((f"/{name}", f":{name}"))]
    if len(mine) == 1:
        return libraries.documents(mine[0])
    if not known:
        one = document_named(name, libraries.all_documents())
        if one is not None:
            return [one]
    return libraries.documents(one_of(name, candidates, "known"))


async def tell(app: "App", session: "Session") -> bool:
    """Tell a running conversation what the libraries' documentation is now; False where it knows, or has
    not begun."""
    from croze.app.gathering import visible_facts
    from croze.context.gather import GatherState
    from croze.context.library_facts import LibraryDocs, gather_libraries

    events = session.events
    if not any(isinstance(event.body, ModelCalled) for event in events):
        return False
    undone = [event.body for event in events if isinstance(event.body, Undone)]
    seen = visible_facts(events, undone[-1] if undone else Undone(undo_id="", kind="undo"))
    config, env = app.config, app.env
    state = GatherState(
        root=config.project.root,
        events=events,
        source=app.store.source,
        seen=seen,
        libraries=LibraryDocs(
            lambda: open_libraries(config, env),
            libraries_file(config),
            config.settings.knowledge.library_tokens,
            again=True,
        ),
    )
    facts = [fact for fact in await gather_libraries(state) if isinstance(fact, FactAdded)]
    for fact in facts:
        await session.add_fact(msgspec.structs.replace(fact, message_id=session.new_id()))
    return bool(facts)


def set_url(config: Config, url: str) -> str:
    """Take the documentation from another address from now on."""
    from croze.app.config_file import set_value

    checked = checked_url(url)
    set_value(config.paths.config_file, URL_KEY, checked)
    return checked


def audited(config: Config, env: Mapping[str, str]) -> list[Found]:
    """The documents of the added libraries, with what a session without a task would be told of each."""
    from croze.knowledge.nearest import choose

    libraries = open_libraries(config, env)
    documents = libraries.all_documents()
    most = config.settings.knowledge.library_tokens
    choice = choose(documents, (), most)
    shown = {each.document.name: each.left for each in choice.shown}
    found = [
        Found(
            kind="libraries",
            name=each.name,
            path=each.file or each.library,
            source="user",
            state="loaded" if shown.get(each.name, 1) == 0 else "cut",
            reason="" if shown.get(each.name, 1) == 0 else _cut(each, shown.get(each.name), most),
            size=len(each.text.encode("utf-8", "replace")),
            tokens=each.tokens - shown.get(each.name, each.tokens),
            folder=each.library,
        )
        for each in documents
    ]
    having = {each.library for each in documents}
    return found + [
        Found(
            kind="libraries",
            name=each.name,
            path=str(libraries_file(config)),
            source="user",
            state="broken",
            reason="there is no documentation of it",
        )
        for each in libraries.added()
        if each.name not in having
    ]


def _cut(document: Document, left: int | None, most: int) -> str:
    tokens = document.tokens if left is None else left
    return f"about {tokens:,} tokens of it are left out: all libraries together get {most:,}"


def _not_installed(libraries: Libraries, name: str) -> UsageError:
    kind, _, own = name.partition(":")
    if kind == "npm":
        where = str(libraries.root / "node_modules")
    else:
        places = site_packages(libraries.root, libraries.env)
        where = ", ".join(map(str, places)) or str(libraries.root / ".venv")
    return UsageError(
        f"The package {own} is not installed for this project (looked in {where}).",
        hint="Install it in the project's environment first.",
        code="library_not_installed",
        library=own,
        where=where,
    )
