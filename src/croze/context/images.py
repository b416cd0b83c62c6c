"""Images of a prompt: the log holds their hashes, a request their bytes."""

import base64
from collections.abc import Mapping
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from croze.types.context import Message, Prompt
from croze.types.event import Body, ToolReturned, UserSaid
from croze.types.parts import Image, Part


def images_of(body: Body) -> tuple[Image, ...]:
    """The images that an event brings into the context."""
    match body:
        case ToolReturned():
            return body.images
        case UserSaid():
            return tuple(part for part in body.parts if isinstance(part, Image))
        case _:
            return ()


class Images:
    """The bytes of a session's images, put into its prompts. The same message gives the same one."""

    def __init__(self) -> None:
        self._data: dict[str, str] = {}
        self._filled: WeakKeyDictionary[Message, Message | None] = WeakKeyDictionary()
        self._wanted: set[str] = set()

    def know(self, body: Body) -> None:
        """Take note of the images that an event brings."""
        self._wanted.update(image.blob for image in images_of(body))

    @property
    def missing(self) -> tuple[str, ...]:
        """The blobs that `put` has not been given yet."""
        return tuple(sorted(self._wanted - self._data.keys()))

    def put(self, blobs: Mapping[str, bytes | None]) -> None:
        """The bytes of these blobs; None for one that is no longer stored."""
        for name, data in blobs.items():
            self._data[name] = "" if data is None else base64.b64encode(data).decode("ascii")

    def fill(self, prompt: Prompt) -> Prompt:
        """The prompt with its images' bytes, where it has images."""
        if not self._wanted:
            return prompt
        return replace(prompt, messages=tuple(map(self._message, prompt.messages)))

    def _message(self, message: Message) -> Message:
        if message in self._filled:
            return self._filled[message] or message
        filled = None
        if any(isinstance(part, Image) for part in message.parts):
            filled = replace(message, parts=tuple(map(self._part, message.parts)))
        self._filled[message] = filled
        return filled or message

    def _part(self, part: Part) -> Part:
        if isinstance(part, Image) and not part.data:
            return replace(part, data=self._data.get(part.blob, ""))
        return part
