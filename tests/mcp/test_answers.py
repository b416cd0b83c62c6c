"""What comes back from a server: taken apart however it is cut, shown as text and images, or told to be left out."""

import asyncio
import base64
import itertools
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.types import CallToolResult, GetPromptResult, JSONRPCMessage, ReadResourceResult

from croze.mcp.content import Answer, of_call, of_prompt, of_resource
from croze.mcp.transport import Incoming, Lines
from croze.tools.mcp import result_of
from tests.tools.conftest import FakeContext, fake_context

__all__ = ["fake_context"]

STREAM = (
    b'{"jsonrpc":"2.0","id":1,"result":{"text":"\xe4\xb8\xad"}}\n\nnoise\n'
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":{}}\r\n'
    b'{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"no"}}\n{"unfinished'
)


def png(width: int, height: int) -> bytes:
    """A picture of this size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"".join(b"\0" + b"\0" * width for _ in range(height)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def messages(*pieces: bytes) -> list[JSONRPCMessage]:
    """The messages in pieces of a server's output."""

    async def read() -> list[JSONRPCMessage]:
        incoming = Incoming()
        lines = Lines(incoming)
        assert all(lines.feed(piece) for piece in pieces)
        assert lines.junk == len(b"noise")
        incoming.close()
        return [each.message async for each in incoming if not isinstance(each, Exception)]

    return asyncio.run(read())


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_messages_are_the_same_however_the_output_is_cut(cuts: list[int]) -> None:
    ends = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[a:b] for a, b in itertools.pairwise(ends)]
    found = messages(*pieces)
    assert found == messages(STREAM)
    assert len(found) == 3


def call(*content: dict[str, Any], **more: Any) -> Answer:
    return of_call(CallToolResult.model_validate({"content": content, **more}))


def test_every_kind_of_content_is_shown_or_named() -> None:
    picture = base64.b64encode(png(4, 3)).decode()
    answer = call(
        {"type": "text", "text": "a\x1b[31mb\u202e"},
        {"type": "image", "data": picture, "mimeType": "image/png"},
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "x://y", "name": "why"},
        {"type": "resource", "resource": {"uri": "x://z", "text": "inside"}},
        {"type": "resource", "resource": {"uri": "x://b", "blob": "AAAA"}},
    )
    assert answer.text == "ab\\u202e\n\n[resource x://y: why]\n\n[resource x://z]\ninside"
    assert answer.images == (png(4, 3),)
    assert answer.left == ("3 bytes of audio/wav", "the bytes of resource x://b")


def test_values_without_text_are_shown_as_json() -> None:
    assert call(structuredContent={"a": [1]}).text == '{\n  "a": [\n    1\n  ]\n}'


def test_an_answer_is_bounded() -> None:
    assert len(call({"type": "text", "text": "x" * 3_000_000}).text) < 2_000_100


def test_resources_and_prompts_are_texts() -> None:
    read = ReadResourceResult.model_validate({"contents": [{"uri": "a://b", "text": "one"}]})
    assert of_resource(read).text == "one"
    said = {"role": "assistant", "content": {"type": "text", "text": "two"}}
    assert of_prompt(GetPromptResult.model_validate({"messages": [said]})).text == "assistant: two"


async def test_a_model_that_sees_gets_the_images(fake_context: FakeContext) -> None:
    fake_context.vision = True
    result = await result_of(Answer(images=(png(40, 30), b"not an image")), "s:t", fake_context)
    [image] = result.images
    assert image.media_type == "image/png"
    assert fake_context.kept[image.blob] == png(40, 30)
    assert "an image of 12 bytes that models don't take" in result.message
    assert result.image_tokens > 0


async def test_a_model_that_does_not_see_is_told(fake_context: FakeContext) -> None:
    result = await result_of(Answer(images=(png(40, 30),)), "s:t", fake_context)
    assert result.images == ()
    assert "an image (40×30), as this model can't see" in result.message


@pytest.mark.parametrize("failed", [True, False])
async def test_a_failed_answer_is_a_failed_result(fake_context: FakeContext, failed: bool) -> None:
    result = await result_of(Answer(text="why", failed=failed), "s:t", fake_context)
    assert (result.ok, result.text) == (not failed, "why")
