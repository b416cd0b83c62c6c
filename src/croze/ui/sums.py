"""What a turn took: steps, files, lines, tokens, the share from the cache, money."""

from croze.types.event import Body, FilesChanged, ModelSaid, Stopped
from croze.ui.cli.output import dollars, thousands
from croze.ui.i18n import _


class Sums:
    """Adds up the events of one turn."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[int, int]] = {}
        self._input: int | None = 0
        self._cached: int | None = 0
        self._output: int | None = 0

    def take(self, body: Body) -> None:
        match body:
            case FilesChanged():
                for change in body.changes:
                    added, removed = self._files.get(change.path, (0, 0))
                    self._files[change.path] = (added + change.added, removed + change.removed)
            case ModelSaid():
                self._input = _plus(self._input, body.usage.input)
                self._output = _plus(self._output, body.usage.output)
                self._cached = _plus(self._cached, body.usage.cached)
            case _:
                pass

    def line(self, stopped: Stopped) -> str:
        """The turn in one line."""
        parts = [counted_steps(stopped.steps)]
        if self._files:
            added = sum(a for a, _removed in self._files.values())
            removed = sum(r for _added, r in self._files.values())
            parts.append(f"{counted_files(len(self._files))} +{added} −{removed}")
        if self._input or self._output:
            parts.append(self._tokens())
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


def counted_steps(count: int) -> str:
    return _("1 step") if count == 1 else _("{count} steps", count=count)


def counted_files(count: int) -> str:
    return _("1 file") if count == 1 else _("{count} files", count=count)


def counted_messages(count: int) -> str:
    return _("1 message") if count == 1 else _("{count} messages", count=count)


def _plus(total: int | None, more: int | None) -> int | None:
    return None if total is None or more is None else total + more
