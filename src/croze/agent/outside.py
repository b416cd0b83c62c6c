"""Takes secrets out of everything else that is appended: facts, notices, questions, errors, summaries.

Replies and results are redacted where they are made (`exchange`, `tools.run`); what the user says and
answers is kept as it was typed.
"""

from typing import Any

from msgspec.structs import replace

from croze.text.redact import redact, redact_value
from croze.types.event import (
    Annotated,
    Asked,
    BackgroundTask,
    Body,
    Compacted,
    FactAdded,
    Notice,
    Retried,
    Stopped,
    TodoItem,
    TodoSet,
)


def redacted(body: Body) -> Body:
    """The event as it is recorded; the very same one where it holds no secret."""
    match body:
        case FactAdded():
            return _changed(body, text=_text(body.text), reply=_text(body.reply))
        case Notice() | Annotated():
            return _notice(body)
        case Retried():
            return _changed(body, message=_text(body.message))
        case Stopped():
            return _changed(body, text=_text(body.text))
        case Asked():
            options = tuple(map(_text, body.options))
            return _changed(body, text=_text(body.text), options=options)
        case BackgroundTask():
            return _changed(
                body,
                command=_text(body.command),
                last=_text(body.last),
                error=_text(body.error),
            )
        case TodoSet():
            return _changed(body, items=tuple(map(_item, body.items)))
        case Compacted():
            return _changed(
                body,
                replaced=redact_value(body.replaced)[0],
                cut=redact_value(body.cut)[0],
                summary=_text(body.summary),
                receipt=_text(body.receipt),
            )
        case _:
            return body


def _notice(body: Notice | Annotated) -> Body:
    if isinstance(body, Notice):
        return _changed(body, text=_text(body.text), params=redact_value(body.params)[0])
    content = None if body.content is None else _text(body.content)
    return _changed(body, content=content, metadata=redact_value(body.metadata)[0])


def _item(item: TodoItem) -> TodoItem:
    return replace(item, text=_text(item.text), note=_text(item.note))


def _text(text: str) -> str:
    return redact(text)[0] if text else text


def _changed(body: Body, **fields: Any) -> Body:
    same = all(getattr(body, name) == value for name, value in fields.items())
    return body if same else replace(body, **fields)
