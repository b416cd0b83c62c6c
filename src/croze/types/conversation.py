"""What a session looks like from outside: a conversation of messages, its totals, hits, statistics."""

from typing import Any

from msgspec import Struct, field

Content = str | dict[str, Any] | list[Any]


class LlmMetadata(Struct, frozen=True):
    """What a reply used and cost (US dollars); None is unknown. `input_tokens` is the whole input with
    cached tokens as part of it, `conversation_round` the step that made the reply."""

    model_name: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    input_cost: float | None = None
    output_cost: float | None = None
    conversation_round: int | None = None


class ConversationMessage(Struct, frozen=True, omit_defaults=True):
    """One message of the transcript. `role` is user, assistant or tool (an imported one may have any);
    `created_at` is microseconds since the epoch, UTC; `seq` the event it began with."""

    message_id: str
    role: str
    content: Content
    created_at: int
    metadata: dict[str, Any] = field(default_factory=dict)
    llm_metadata: LlmMetadata | None = None
    seq: int = 0


class ConversationSummary(Struct, frozen=True, omit_defaults=True):
    """A conversation without its messages. Times are microseconds since the epoch, UTC.

    Tokens are the session's own. `cost` is in US dollars, its own (where known) and `children_cost`,
    its sub-agents', together; None where nothing is known. `unpriced` counts own replies whose cost
    is unknown. `tools` counts results by tool. `first` is the beginning of the first user message.
    """

    id: str
    name: str
    description: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    namespace: str = "default"
    project: str = ""
    parent: str | None = None
    forked_from: tuple[str, int] | None = None
    created_at: int = 0
    updated_at: int = 0
    last_seq: int = 0
    model: str = ""
    first: str = ""
    message_count: int = 0
    steps: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None
    children_cost: float | None = None
    unpriced: int = 0
    tools: dict[str, int] = field(default_factory=dict)


class Conversation(ConversationSummary, frozen=True, omit_defaults=True):
    """A conversation with its transcript."""

    messages: tuple[ConversationMessage, ...] = ()


class SearchHit(Struct, frozen=True):
    """A place in the log where the words were found; `snippet` is the text around the first of them.
    `message_id` is empty for a session's name or description."""

    session: str
    name: str
    seq: int
    role: str
    message_id: str
    at: int
    snippet: str


class StoreStatistics(Struct, frozen=True):
    """Totals over the store's conversations (sub-agents' only where asked for), and what this process
    has done since it opened the store (`created`, `loaded`, cache hits and misses). `bytes` is the
    database's size on disk."""

    conversations: int
    messages: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: float | None
    unpriced: int
    tools: dict[str, int]
    namespaces: int
    bytes: int
    created: int
    loaded: int
    cache_hits: int
    cache_misses: int
