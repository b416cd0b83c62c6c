"""The second half of the pipeline: the pages, their links, the index."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from croze.teams.docs.folder import sha256
from croze.teams.docs.index import index_page
from croze.teams.docs.links import Broken, broken, without
from croze.teams.docs.manifest import Entry, spec_of, with_entry
from croze.teams.docs.shop import Ended, Shop, closed
from croze.teams.docs.texts import DETAIL, FORM, detail_task, mend_task, wrong_task
from croze.teams.docs.values import (
    AT_ONCE,
    INDEX,
    Brief,
    DocsOptions,
    DocsState,
    IndexState,
    LinkNote,
    Page,
    PageDone,
    PageLinks,
)
from croze.teams.flow import DONE, BatchNode, Node
from croze.text.secret_values import MARK
from croze.types.errors import CrozeError, UsageError
from croze.workspace.paths import PathError

LINKS, TO_INDEX = "links", "index"
EDITED = "it was edited by hand"
FOREIGN = "it was not written by croze docs"

_FENCED = re.compile(r"(`{3,})(?:markdown|md)?[ \t]*\n(.*)\n\1[ \t]*", re.DOTALL)


class Detail(BatchNode[DocsState, Page, PageDone]):
    """Writes the pages whose sources, structure or wording have changed, several at once."""

    limit = AT_ONCE
    kept = PageDone

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._brief = Brief("", "", "", "")
        self._options = DocsOptions()
        self._pages: tuple[Page, ...] = ()

    def key(self, item: Page) -> str:
        return item.path

    async def prep(self, shared: DocsState) -> Sequence[Page]:
        if shared.brief is None or not shared.pages:
            raise UsageError(
                "There is no structure yet to write pages from.",
                hint="Run `croze docs --stage structure` first, or all stages.",
                code="docs_stage",
                missing="structure",
            )
        self._brief, self._options, self._pages = shared.brief, shared.options, shared.pages
        judged = await asyncio.to_thread(lambda: [self._judge(page) for page in shared.pages])
        self._shop.waiting = sum(done is None for done, _, _ in judged)
        return shared.pages

    def _judge(self, page: Page) -> tuple[PageDone | None, Entry, str]:
        """What a page is without being written; None where it has to be. With the entry that it would get,
        and its present digest."""
        folder = self._shop.folder
        origin = {source: folder.source_digest(source) for source in page.sources}
        spec = spec_of(page, self._brief, self._options, FORM)
        present = folder.digest(page.path)
        fresh = Entry(page.path, "", origin, spec, present)
        entry = self._shop.manifest.entry(page.path)
        same = entry is not None and (entry.spec, entry.sources) == (spec, origin)
        if entry is not None and same and present == entry.sha256:
            return PageDone(page.path, "unchanged", present), fresh, present
        if present and not self._options.force and (entry is None or not entry.is_ours(present)):
            note = FOREIGN if entry is None else EDITED
            if entry is not None and not same:
                note += ", and what it is made from has changed since"
            return PageDone(page.path, "kept", present, note=note), fresh, present
        gone = [source for source, digest in origin.items() if not digest]
        if gone:
            note = f"its sources can't be read: {', '.join(gone)}"
            return PageDone(page.path, "failed", present, note=note), fresh, present
        return None, fresh, present

    async def each(self, item: Page) -> PageDone:
        done, entry, present = await asyncio.to_thread(self._judge, item)
        if done is not None:
            return done
        shop = self._shop
        child = await shop.open(DETAIL, f"Write the page {item.path}.", label=item.path)
        try:
            task = detail_task(item, self._brief, self._options, self._pages, shop.folder)
            text, problem = "", ""
            for _attempt in range(2):
                stopped = await shop.submit(child, task)
                if stopped.reason != "done":
                    note = f"{stopped.reason}: {stopped.text}"
                    return PageDone(item.path, "failed", present, child.session, note)
                text = tidy(child.answer, item.title)
                problem = page_problem(text)
                if not problem:
                    break
                task = wrong_task(problem).replace("JSON object", "page")
        finally:
            shop.waiting -= 1
            await closed(child)
        if problem:
            return PageDone(item.path, "failed", present, child.session, problem)
        data = text.encode()
        try:
            await write_page(shop, replace(entry, sha256=sha256(data)), data, present)
        except PathError as error:
            if error.code != "file_changed":
                raise
            return PageDone(item.path, "kept", "", child.session, "it was edited meanwhile")
        return PageDone(item.path, "written", sha256(data), child.session)

    async def post(
        self, shared: DocsState, prepared: Sequence[Page], result: list[PageDone]
    ) -> str:
        shared.done = tuple(result)
        states = {done.path: done.state for done in result}
        shared.history.append(self._shop.noted("docs_detail", "the pages", {}, states))
        return DONE if shared.options.stage == "detail" else LINKS


class Links(BatchNode[DocsState, tuple[str, list[Broken]], PageLinks]):
    """Has broken links mended by the agent that wrote their page; what stays broken is taken out of pages
    that are ours, and told of the others."""

    limit = AT_ONCE
    kept = PageLinks

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._done: dict[str, PageDone] = {}
        self._pages: tuple[Page, ...] = ()

    def key(self, item: tuple[str, list[Broken]]) -> str:
        return item[0]

    async def prep(self, shared: DocsState) -> Sequence[tuple[str, list[Broken]]]:
        if not shared.pages:
            raise UsageError(
                "There is no structure yet to make an index from.",
                hint="Run `croze docs --stage structure` first, or all stages.",
                code="docs_stage",
                missing="structure",
            )
        self._done = {done.path: done for done in shared.done}
        self._pages = shared.pages
        found = await asyncio.to_thread(all_broken, self._shop, shared.pages)
        pages: dict[str, list[Broken]] = {}
        for each in found:
            pages.setdefault(each.page, []).append(each)
        self._shop.waiting = len(pages)
        return list(pages.items())

    async def each(self, item: tuple[str, list[Broken]]) -> PageLinks:
        path, found = item
        shop = self._shop
        text = await asyncio.to_thread(shop.folder.text, path) or ""
        before = sha256(text.encode())
        entry = shop.manifest.entry(path)
        if entry is None or entry.sha256 != before:
            return PageLinks(path, before, _notes(found, "left"))
        try:
            mended = await self._mended(path, text, found)
        finally:
            shop.waiting -= 1
        left = await asyncio.to_thread(all_broken, shop, self._pages, {path: mended})
        gone = {each.target for each in left}
        after = without(mended, gone)
        data = after.encode()
        try:
            await write_page(shop, replace(entry, sha256=sha256(data), before=before), data, before)
        except PathError as error:
            if error.code != "file_changed":
                raise
            return PageLinks(path, "", _notes(found, "left"))
        notes = [
            LinkNote(path, each.target, each.why, "removed" if each.target in gone else "mended")
            for each in found
        ]
        return PageLinks(path, sha256(data), tuple(notes))

    async def _mended(self, path: str, text: str, found: list[Broken]) -> str:
        """The page as its writer mends it; as it stands where that can't be done."""
        done = self._done.get(path)
        if done is None or done.state != "written" or not done.child:
            return text
        try:
            child = await self._shop.open(
                DETAIL, f"Mend the links of {path}.", label=path, resume=done.child
            )
        except Ended:
            raise
        except CrozeError:
            return text
        try:
            stopped = await self._shop.submit(child, mend_task(found))
            if stopped.reason != "done":
                return text
            title = text.partition("\n")[0].removeprefix("# ")
            mended = tidy(child.answer, title)
        finally:
            await closed(child)
        return text if page_problem(mended) else mended

    async def post(
        self,
        shared: DocsState,
        prepared: Sequence[tuple[str, list[Broken]]],
        result: list[PageLinks],
    ) -> str:
        now = {each.path: each.sha256 for each in result if each.sha256}
        shared.done = tuple(
            replace(done, sha256=now.get(done.path, done.sha256)) for done in shared.done
        )
        shared.links = tuple(note for each in result for note in each.notes)
        return TO_INDEX


class Index(Node[DocsState, DocsState, IndexState]):
    """Takes out what mending has broken anew, and writes the index page."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop

    async def prep(self, shared: DocsState) -> DocsState:
        return shared

    async def exec(self, prepared: DocsState) -> IndexState:
        shop, folder = self._shop, self._shop.folder
        await self._take_out(prepared)
        brief = prepared.brief or shop.manifest.brief
        assert brief is not None
        there = [page for page in prepared.pages if folder.digest(page.path)]
        data = index_page(brief, there).encode()
        present = folder.digest(INDEX)
        if present == sha256(data):
            await shop.keep(replace(shop.manifest, index=present))
            return "unchanged"
        if present and present != shop.manifest.index and not prepared.options.force:
            return "kept"
        await folder.write(INDEX, data, expect=present)
        await shop.keep(replace(shop.manifest, index=sha256(data)))
        return "written"

    async def _take_out(self, shared: DocsState) -> None:
        shop = self._shop
        told = {(note.page, note.target) for note in shared.links}
        pages: dict[str, list[Broken]] = {}
        for each in await asyncio.to_thread(all_broken, shop, shared.pages):
            if (each.page, each.target) not in told:
                pages.setdefault(each.page, []).append(each)
        for path, found in pages.items():
            text = shop.folder.text(path) or ""
            before = sha256(text.encode())
            entry = shop.manifest.entry(path)
            ours = entry is not None and entry.sha256 == before
            if ours and entry is not None:
                data = without(text, {each.target for each in found}).encode()
                entry = replace(entry, sha256=sha256(data), before=before)
                await write_page(shop, entry, data, before)
            shared.links += _notes(found, "removed" if ours else "left")

    async def post(self, shared: DocsState, prepared: DocsState, result: IndexState) -> str:
        shared.index = result
        shared.history.append(self._shop.noted("docs_index", "the index page", {}, result))
        return DONE


def tidy(answer: str, title: str) -> str:
    """An answer as a page: without a fence round all of it, with its title first and a line end last."""
    text = answer.replace("\r\n", "\n").strip()
    fenced = _FENCED.fullmatch(text)
    if fenced is not None and not re.search(rf"^{fenced[1]}", fenced[2], re.MULTILINE):
        text = fenced[2].strip()
    if not text.startswith("# "):
        at = text.find(f"\n# {title}\n")
        if at >= 0:
            text = text[at + 1 :]
        elif _lines(text) > 1:
            text = f"# {title}\n\n{text}"
    return f"{text}\n" if text else ""


def page_problem(text: str) -> str:
    """Why a text can't be a page; empty where it can."""
    if not text.startswith("# ") or _lines(text) < 2:
        return "It holds no page with its title as the first line."
    if MARK in text:
        return f"It holds {MARK}, which stands for a secret: leave that out."
    return ""


def _lines(text: str) -> int:
    return sum(bool(line.strip()) for line in text.splitlines())


def all_broken(
    shop: Shop, pages: Sequence[Page], instead: Mapping[str, str] | None = None
) -> list[Broken]:
    """The links of the pages as they stand that lead nowhere; of those alone that are given `instead` of
    how they stand."""
    texts = {page.path: shop.folder.text(page.path) for page in pages} | dict(instead or {})
    there = {path: text for path, text in texts.items() if text is not None}
    of = tuple(instead or there)
    return broken({**there, INDEX: ""}, shop.folder.out, shop.folder.is_there, of)


async def write_page(shop: Shop, entry: Entry, data: bytes, present: str) -> None:
    """Write a page, and before it what it comes from, so that it is known as ours whatever happens between
    them. Raises PathError, code `file_changed` where the page is no longer as `present` says."""
    await shop.keep(with_entry(shop.manifest, entry))
    if sha256(data) != present:
        await shop.folder.write(entry.path, data, expect=present)


def _notes(found: Sequence[Broken], state: Literal["removed", "left"]) -> tuple[LinkNote, ...]:
    return tuple(LinkNote(each.page, each.target, each.why, state) for each in found)
