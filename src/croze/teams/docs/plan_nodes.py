"""The first half of the pipeline: what the set is about, which pages it has, and whether the user agrees."""

import asyncio

from msgspec.structs import replace

from croze.teams.docs.manifest import asked_as, listing_digest, without_pages
from croze.teams.docs.shop import Shop
from croze.teams.docs.structure import matches, read_brief, read_structure, shown
from croze.teams.docs.texts import (
    CREATE,
    STRUCTURE,
    create_task,
    rejected_task,
    structure_task,
)
from croze.teams.docs.values import Brief, DocsOptions, DocsState, Page
from croze.teams.flow import DONE, Node
from croze.types.errors import UsageError
from croze.types.event import Asked

NEW, REVIEW, ACCEPT, DETAIL = "structure", "review", "accept", "detail"
WAIT, REJECTED = "wait", "rejected"
YES, NO = "accept", "reject"


class Create(Node[DocsState, DocsOptions, Brief]):
    """Settles title, audience and scope; the last run's stay where the same is asked for."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop

    async def prep(self, shared: DocsState) -> DocsOptions:
        return shared.options

    async def exec(self, prepared: DocsOptions) -> Brief:
        known = self._shop.manifest
        if known.brief is not None and prepared.stage is None and asked_as(prepared, known):
            return known.brief
        return await self._shop.settle(
            CREATE, "Settle what the documentation is about.", create_task(prepared), read_brief
        )

    async def post(self, shared: DocsState, prepared: DocsOptions, result: Brief) -> str:
        shared.brief = result
        shared.history.append(
            self._shop.noted("docs_create", "what the set is about", {}, {"title": result.title})
        )
        if prepared.stage == "create":
            return ACCEPT
        return NEW


class Structure(Node[DocsState, str, tuple[Page, ...]]):
    """Divides the set into pages; the last run's structure stays as long as nothing speaks against it."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._state = DocsState("", "")

    async def prep(self, shared: DocsState) -> str:
        """Why a new structure is needed; empty where none is."""
        if shared.brief is None:
            raise UsageError(
                "There is no brief yet to make a structure from.",
                hint="Run `croze docs --stage create` first, or all stages.",
                code="docs_stage",
                missing="create",
            )
        self._state = shared
        shared.known = await asyncio.to_thread(self._listing)
        shared.why = self._why(shared)
        return shared.why

    def _listing(self) -> str:
        shop = self._shop
        if shop.tree is None:
            return ""
        tree, _ = shop.live.cache.tree(shop.live.workspace.files, shop.tree)
        return listing_digest(tree.whole, shop.folder.out)

    def _why(self, shared: DocsState) -> str:
        known = self._shop.manifest
        if shared.wish:
            return rejected_task(shared.wish)
        if not known.pages:
            return "There is none yet."
        if shared.options.stage == "structure":
            return "The user asks for a new look at it."
        if not asked_as(shared.options, known) or known.brief != shared.brief:
            return "What is asked for has changed."
        if known.known and known.known != shared.known:
            return "Files have come or gone since it was made."
        gone = [s for page in known.pages for s in page.sources if self._problem(s)]
        return f"These sources are no longer there: {', '.join(gone[:20])}." if gone else ""

    def _problem(self, source: str) -> str:
        if not matches(source, self._state.options.sources):
            return "is not among the sources that the user names"
        return self._shop.folder.source_problem(source)

    async def exec(self, prepared: str) -> tuple[Page, ...]:
        shared, known = self._state, self._shop.manifest
        assert shared.brief is not None
        if not prepared:
            return known.pages
        present = shared.pages or known.pages
        return await self._shop.settle(
            STRUCTURE,
            "Divide the documentation into pages.",
            structure_task(shared.brief, shared.options, present, prepared),
            lambda answer: read_structure(answer, self._problem),
        )

    async def post(self, shared: DocsState, prepared: str, result: tuple[Page, ...]) -> str:
        shared.pages, shared.wish = result, ""
        shared.history.append(
            self._shop.noted("docs_structure", prepared, {}, {"pages": [p.path for p in result]})
        )
        return REVIEW if prepared and shared.options.review else ACCEPT


class Review(Node[DocsState, str, str]):
    """Puts the structure to the user, who accepts it, rejects it, says what to change, or gives it back
    changed; where nobody is there it waits."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._problem = ""

    async def prep(self, shared: DocsState) -> str:
        assert shared.brief is not None
        return self._problem + shown(shared.brief, shared.pages)

    async def exec(self, prepared: str) -> str:
        live = self._shop.live
        if live.headless:
            return WAIT
        asked = Asked(ask_id=live.source.uuid(), kind="question", text=prepared, options=(YES, NO))
        return (await self._shop.host.decide(asked)).answer.strip()

    async def post(self, shared: DocsState, prepared: str, result: str) -> str:
        self._problem = ""
        if result in (WAIT, ""):
            return WAIT
        if result.casefold() == YES:
            return ACCEPT
        if result.casefold() == NO:
            return REJECTED
        if "pages:" not in result and '"pages"' not in result:
            shared.wish = result
            return NEW
        pages = read_structure(result, self._shop.folder.source_problem)
        if isinstance(pages, str):
            self._problem = "".join(f"# {line}\n" for line in pages.splitlines())
            return REVIEW
        shared.pages = pages
        return ACCEPT


class Accept(Node[DocsState, DocsState, tuple[str, ...]]):
    """Keeps what was settled, and takes away the pages that the structure no longer has."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop

    async def prep(self, shared: DocsState) -> DocsState:
        return shared

    async def exec(self, prepared: DocsState) -> tuple[str, ...]:
        shop, options = self._shop, prepared.options
        known = replace(
            shop.manifest,
            brief=prepared.brief,
            prompt=options.prompt,
            globs=options.sources,
            language=options.language,
        )
        if options.stage == "create":
            await shop.keep(known)
            return ()
        paths = {page.path for page in prepared.pages}
        old = [entry for entry in known.written if entry.path not in paths]
        await shop.keep(replace(known, pages=prepared.pages, known=prepared.known))
        gone = []
        for entry in old:
            path = entry.path
            present = await asyncio.to_thread(shop.folder.digest, path)
            if present and (entry.is_ours(present) or options.force):
                await shop.folder.remove(path, expect=present)
                gone.append(path)
        if old:
            await shop.keep(without_pages(shop.manifest, [entry.path for entry in old]))
        return tuple(gone)

    async def post(self, shared: DocsState, prepared: DocsState, result: tuple[str, ...]) -> str:
        shared.gone = result
        return DONE if shared.options.stage in ("create", "structure") else DETAIL
