"""What a turn took: steps, files, lines, tokens, the share from the cache, money."""

from typing import TYPE_CHECKING

from croze.types.event import (
    Body,
    ChildClosed,
    Compacted,
    FilesChanged,
    ModelSaid,
    Stopped,
    ToolReturned,
)
from croze.types.model import Usage
from croze.ui.cli.output import dollars, thousands
from croze.ui.i18n import _

if TYPE_CHECKING:
    from croze.app.stats import Stats


def compaction_line(body: Compacted) -> str:
    """What a compaction did, in one line."""
    before, after = thousands(body.tokens_before), thousands(body.tokens_after)
    if body.summary:
        return _(
            "context shortened from {before} to {after} tokens ({policy}, with a summary)",
            before=before,
            after=after,
            policy=body.policy,
        )
    return _(
        "context shortened from {before} to {after} tokens ({policy})",
        before=before,
        after=after,
        policy=body.policy,
    )


class Sums:
    """Adds up the events of one turn."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[int, int]] = {}
        self._input: int | None = 0
        self._cached: int | None = 0
        self._output: int | None = 0
        self._spared = 0

    def take(self, body: Body) -> None:
        match body:
            case FilesChanged():
                for change in body.changes:
                    added, removed = self._files.get(change.path, (0, 0))
                    self._files[change.path] = (added + change.added, removed + change.removed)
            case ModelSaid():
                self._use(body.usage)
            case ChildClosed(report=report) if report.steps:
                self._use(report.usage)
            case ToolReturned(look=look) if look is not None:
                self._spared += look.saved
            case _:
                pass

    def _use(self, usage: Usage) -> None:
        self._input = _plus(self._input, usage.input)
        self._output = _plus(self._output, usage.output)
        self._cached = _plus(self._cached, usage.cached)

    def line(self, stopped: Stopped) -> str:
        """The turn in one line."""
        parts = [counted_steps(stopped.steps)]
        if self._files:
            added = sum(a for a, _removed in self._files.values())
            removed = sum(r for _added, r in self._files.values())
            parts.append(f"{counted_files(len(self._files))} +{added} −{removed}")
        if self._input or self._output:
            parts.append(self._tokens())
        if self._spared:
            parts.append(_("{tokens} tokens not sent again", tokens=thousands(self._spared)))
        if stopped.cost is not None:
            parts.append(dollars(stopped.cost))
        return " · ".join(parts)

    def _tokens(self) -> str:
        count_in, count_out = thousands(self._input), thousands(self._output)
        if not self._input or not self._cached:
            return _("{input} tokens in, {output} out", input=count_in, output=count_out)
        return _(
            "{input} tokens in ({share} % cached), {output} out",
            input=count_in,
            share=100 * self._cached // self._input,
            output=count_out,
        )


def cache_parts(found: "Stats") -> list[str]:
    """What the shared cache did, in a few words each; none where it did nothing."""
    parts = []
    tree, cache = found.tree, found.cache
    if tree is not None and tree.error:
        parts.append(_("tree: none ({reason})", reason=tree.error))
    elif tree is not None:
        parts.append(
            _(
                "tree: {size} characters, depth {depth}, {left_out} of {entries} entries left out, {ms} ms",
                size=tree.size,
                depth=tree.max_depth,
                left_out=tree.left_out,
                entries=tree.entries,
                ms=f"{tree.seconds * 1000:.0f}",
            )
        )
    asked = cache.hits + cache.misses
    if asked:
        parts.append(
            _(
                "cache: {hits} of {asked} looks ({share} %)",
                hits=cache.hits,
                asked=asked,
                share=100 * cache.hits // asked,
            )
        )
    if cache.saved_tokens:
        parts.append(_("about {tokens} tokens saved", tokens=thousands(cache.saved_tokens)))
    return parts


def counted_steps(count: int) -> str:
    return _("1 step") if count == 1 else _("{count} steps", count=count)


def counted_files(count: int) -> str:
    return _("1 file") if count == 1 else _("{count} files", count=count)


def counted_messages(count: int) -> str:
    return _("1 message") if count == 1 else _("{count} messages", count=count)


def _plus(total: int | None, more: int | None) -> int | None:
    return None if total is None or more is None else total + more
