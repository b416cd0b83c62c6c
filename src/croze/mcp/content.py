"""What servers answer with, as plain values: text for the model, images, and JSON for programs."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from croze.text.display import safe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp.types import (
        CallToolResult,
        ContentBlock,
        GetPromptResult,
        ReadResourceResult,
    )

MOST_TEXT = 2_000_000
"""Characters of one answer that are kept."""


class Answer(Struct, frozen=True, omit_defaults=True):
    """One answer of a server. `images` are their bytes; `left` says what could not be shown."""

    text: str = ""
    images: tuple[bytes, ...] = ()
    data: Any = None
    failed: bool = False
    left: tuple[str, ...] = ()


def of_call(result: CallToolResult) -> Answer:
    """The answer to a tool's call."""
    answer = _blocks(result.content)
    data = result.structured_content
    text = answer.text
    if data is not None and not text.strip() and not answer.images:
        text = _cut(msgspec.json.format(msgspec.json.encode(data), indent=2).decode())
    return msgspec.structs.replace(answer, text=text, data=data, failed=bool(result.is_error))


def of_resource(result: ReadResourceResult) -> Answer:
    """The contents of a resource."""
    texts: list[str] = []
    images: list[bytes] = []
    left: list[str] = []
    for content in result.contents:
        text = getattr(content, "text", None)
        if text is not None:
            texts.append(safe(text))
            continue
        blob = getattr(content, "blob", "")
        media_type = content.mime_type or "unknown type"
        if media_type.startswith("image/") and (data := _bytes(blob)):
            images.append(data)
        else:
            left.append(f"{len(blob) * 3 // 4:,} bytes of {safe(media_type)[:80]}")
    return Answer(text=_cut("\n\n".join(texts)), images=tuple(images), left=tuple(left))


def of_prompt(result: GetPromptResult) -> Answer:
    """A prompt's messages, each under who says it."""
    texts: list[str] = []
    images: list[bytes] = []
    left: list[str] = []
    for message in result.messages:
        answer = _blocks([message.content])
        texts.append(f"{message.role}: {answer.text}")
        images += answer.images
        left += answer.left
    return Answer(text=_cut("\n\n".join(texts)), images=tuple(images), left=tuple(left))


def _blocks(blocks: Sequence[ContentBlock]) -> Answer:
    texts: list[str] = []
    images: list[bytes] = []
    left: list[str] = []
    for block in blocks:
        match block.type:
            case "text":
                texts.append(safe(block.text))
            case "image":
                data = _bytes(block.data)
                if data:
                    images.append(data)
                else:
                    left.append("an image that is no base64")
            case "audio":
                left.append(f"{len(block.data) * 3 // 4:,} bytes of {safe(block.mime_type)[:80]}")
            case "resource_link":
                name = safe(block.title or block.name, keep_newlines=False)
                texts.append(f"[resource {safe(str(block.uri), keep_newlines=False)}: {name}]")
            case "resource":
                uri = safe(str(block.resource.uri), keep_newlines=False)
                text = getattr(block.resource, "text", None)
                if text is None:
                    left.append(f"the bytes of resource {uri}")
                else:
                    texts.append(f"[resource {uri}]\n{safe(text)}")
    return Answer(text=_cut("\n\n".join(texts)), images=tuple(images), left=tuple(left))


def _cut(text: str) -> str:
    if len(text) <= MOST_TEXT:
        return text
    return f"{text[:MOST_TEXT]}\n… ({len(text) - MOST_TEXT:,} more characters were left out)"


def _bytes(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=False)
    except (binascii.Error, ValueError):
        return b""
