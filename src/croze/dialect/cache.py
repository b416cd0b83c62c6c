"""The encoded form of messages, kept by their identity: the same object in gives the same one out."""

from collections.abc import Callable
from weakref import WeakKeyDictionary

from croze.types.context import Message


class EncodedMessages:
    """Encodes each message once. A transcript that only grew costs in proportion to what is new.

    `encode` gives the message itself where nothing changes, None where it is left out.
    """

    def __init__(self, encode: Callable[[Message], Message | None]) -> None:
        self._encode = encode
        self._kept: WeakKeyDictionary[Message, tuple[Message, ...] | None] = WeakKeyDictionary()
        self._last: tuple[Message, ...] = ()
        self._encoded: tuple[Message, ...] = ()

    def all(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        known = len(self._last)
        if known and messages[:known] == self._last:
            head, rest = self._encoded, messages[known:]
        else:
            head, rest = (), messages
        if rest or len(head) != len(self._encoded):
            head = (*head, *(encoded for message in rest for encoded in self._one(message)))
        self._last, self._encoded = messages, head
        return head

    def _one(self, message: Message) -> tuple[Message, ...]:
        """The encoded message, or nothing. None is kept for 'itself': a value that held its own key
        would never be let go."""
        if message in self._kept:
            kept = self._kept[message]
            return (message,) if kept is None else kept
        encoded = self._encode(message)
        if encoded is message:
            self._kept[message] = None
            return (message,)
        made = () if encoded is None else (encoded,)
        self._kept[message] = made
        return made
