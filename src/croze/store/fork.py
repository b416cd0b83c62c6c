"""Where a conversation is cut for a fork, and what the new one begins with."""

from collections.abc import Sequence

from msgspec import Struct

from croze.types.conversation import Conversation, ConversationMessage
from croze.types.errors import MessageNotFound
from croze.types.event import Annotated, Body, Event, ModelSaid, SessionOpened, ToolReturned
from croze.types.parts import ToolCall


class Branch(Struct, frozen=True):
    """The first `cut` events are taken over, with `opened` for the first; then come `late` ones."""

    cut: int
    opened: SessionOpened
    late: tuple[Body, ...]


def find_message(conversation: Conversation, prefix: str) -> ConversationMessage:
    """The message whose id is or begins with `prefix`."""
    found = [m for m in conversation.messages if prefix and m.message_id.startswith(prefix)]
    exact = [m for m in found if m.message_id == prefix]
    if len(found) == 1 or exact:
        return (exact or found)[0]
    what = "no message" if not found else "no single message"
    raise MessageNotFound(
        f"Session {conversation.id} has {what} {prefix!r}",
        hint=f"`croze session show {conversation.id[:8]}` shows the ids.",
        session=conversation.id,
        message_id=prefix,
    )


def branch_of(
    source: Conversation, events: Sequence[Event], message_id: str | None, *, name: str | None
) -> Branch:
    """The branch that ends with a message (and, for a reply, the results of its calls)."""
    cut = len(events)
    if message_id is not None:
        cut = _end_of(events, find_message(source, message_id))
    new_name = name or f"{source.name} (fork)"
    first = events[0].body
    opened = SessionOpened(
        name=new_name,
        project=source.project,
        namespace=source.namespace,
        description=source.description,
        metadata=source.metadata,
        forked_from=(source.id, cut),
        version=first.version if isinstance(first, SessionOpened) else "",
    )
    taken = {message.message_id for message in source.messages if message.seq <= cut}
    late: list[Body] = [
        event.body
        for event in events[cut:]
        if isinstance(event.body, Annotated) and event.body.target in taken
    ]
    renamed = any(isinstance(e.body, Annotated) and e.body.target is None for e in events[:cut])
    if renamed:  # they are taken over with the rest and would win over the new name
        late.append(
            Annotated(name=new_name, description=source.description, metadata=source.metadata)
        )
    return Branch(cut=cut, opened=opened, late=tuple(late))


def _end_of(events: Sequence[Event], message: ConversationMessage) -> int:
    """The seq of the last event that belongs to the message: its continuations and the results of its
    calls."""
    ids = {getattr(events[message.seq - 1].body, "message_id", message.message_id)}
    calls: set[str] = set()
    end = message.seq
    for event in events[message.seq - 1 :]:
        body = event.body
        if isinstance(body, ModelSaid) and (body.message_id in ids or body.continues in ids):
            ids.add(body.message_id)
            calls |= {part.id for part in body.parts if isinstance(part, ToolCall)}
            end = event.seq
        elif isinstance(body, ToolReturned) and body.call_id in calls:
            end = event.seq
    return end
