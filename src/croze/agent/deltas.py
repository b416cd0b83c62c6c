"""What watchers see while a reply or a command's output comes: the same text as the log, without secrets."""

from collections.abc import Callable

from msgspec.structs import replace

from croze.text.redact import redact
from croze.text.stream_redact import StreamRedactor
from croze.types.stream import Delta


class RedactedDeltas:
    """Publishes deltas with their text redacted. What is held back of one text goes out before anything
    that follows it.

    `before` is the reply so far, where the model goes on with it.
    """

    def __init__(self, publish: Callable[[Delta], None], *, before: str = "") -> None:
        self._publish = publish
        self._before = before
        self._open: tuple[Delta, StreamRedactor] | None = None

    def publish(self, delta: Delta) -> None:
        match delta.kind:
            case "reset":
                self._open = None
            case "phase":
                self.finish()
            case _ if not delta.text:
                self.finish()
                delta = replace(delta, name=redact(delta.name)[0])
            case _:
                self._text(delta)
                return
        self._publish(delta)

    def finish(self) -> None:
        """The text is complete, or nothing more of it comes: what was held back goes out."""
        if self._open is not None:
            last, redactor = self._open
            self._open = None
            if rest := redactor.finish():
                self._publish(replace(last, text=rest, name="", done=False))

    def _text(self, delta: Delta) -> None:
        if self._open is not None:
            last = self._open[0]
            if (last.kind, last.call_id) != (delta.kind, delta.call_id):
                self.finish()
        if self._open is None:
            self._open = delta, StreamRedactor(self._before if delta.kind == "text" else "")
            self._before = ""
        shown = self._open[1].feed(delta.text)
        if delta.done:
            shown += self._open[1].finish()
            self._open = None
        if shown or delta.done or delta.name:
            self._publish(replace(delta, text=shown))
