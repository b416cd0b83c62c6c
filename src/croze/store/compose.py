"""Messages that were not made by a running agent, as events: first messages, appended and imported."""

from typing import Any

import msgspec
from msgspec import Struct, field

from croze.store.fold import JSON_KEY, ROLE_KEY
from croze.types.conversation import Content, LlmMetadata
from croze.types.event import ModelSaid, UserSaid
from croze.types.ids import Source
from croze.types.model import Cost, Usage
from croze.types.parts import Text


class Draft(Struct, frozen=True):
    """A message to be written; without `message_id` it gets a new one."""

    role: str
    content: Content
    metadata: dict[str, Any] = field(default_factory=dict)
    llm_metadata: LlmMetadata | None = None
    message_id: str = ""


def body_of(draft: Draft, source: Source) -> UserSaid | ModelSaid:
    """The event: `ModelSaid` for the assistant, `UserSaid` for all others (their role is kept)."""
    metadata = dict(draft.metadata)
    text = draft.content
    if not isinstance(text, str):
        metadata[JSON_KEY] = True
        text = msgspec.json.encode(text).decode()
    message_id = draft.message_id or source.uuid()
    parts = (Text(text),)
    if draft.role != "assistant":
        if draft.role != "user":
            metadata[ROLE_KEY] = draft.role
        return UserSaid(message_id=message_id, parts=parts, metadata=metadata)
    llm = draft.llm_metadata or LlmMetadata(model_name="")
    return ModelSaid(
        message_id=message_id,
        step=llm.conversation_round or 0,
        model=llm.model_name,
        parts=parts,
        finish="stop",
        usage=Usage(input=llm.input_tokens, output=llm.output_tokens, cached=llm.cached_tokens),
        cost=Cost(input=llm.input_cost, output=llm.output_cost),
        metadata=metadata,
    )
