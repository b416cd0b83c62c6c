"""What a file of an image says of itself: its type and its size in pixels.

Formats: PNG (W3C), GIF89a, JPEG (ITU T.81, the SOF markers), WebP (RFC 9649).
"""

import struct

from msgspec import Struct

MOST_BYTES = 3_750_000
"""Of one image: what providers take is 5 MB of base64 (Anthropic; others take more)."""

MOST_PIXELS = 8_000
"""On a side (Anthropic; others take as many)."""

NAMES = {
    "image/png": "PNG image",
    "image/jpeg": "JPEG image",
    "image/gif": "GIF image",
    "image/webp": "WebP image",
}
_TOKENS_EACH = 750
_MOST_TOKENS = 1_600
_FRAMES = frozenset(
    {*range(0xC0, 0xC4), *range(0xC5, 0xC8), *range(0xC9, 0xCC), *range(0xCD, 0xD0)}
)


class Picture(Struct, frozen=True):
    """An image; width and height are 0 where they could not be found."""

    media_type: str
    width: int
    height: int

    @property
    def tokens(self) -> int:
        """About what a model counts for it: one for each 750 pixels, scaled down first."""
        return max(50, min(_MOST_TOKENS, self.width * self.height // _TOKENS_EACH))


def picture_of(data: bytes) -> Picture | None:
    """What the image in these bytes is; None where they are no image that models take."""
    try:
        if data.startswith(b"\x89PNG\r\n\x1a\n"):
            return Picture("image/png", *_pair(">II", data, 16))
        if data.startswith((b"GIF87a", b"GIF89a")):
            return Picture("image/gif", *_pair("<HH", data, 6))
        if data.startswith(b"\xff\xd8\xff"):
            return Picture("image/jpeg", *_jpeg(data))
        if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
            return Picture("image/webp", *_webp(data))
    except (struct.error, IndexError):
        return Picture(_type(data), 0, 0)
    return None


def _type(data: bytes) -> str:
    if data.startswith(b"\x89PNG"):
        return "image/png"
    if data.startswith(b"GIF8"):
        return "image/gif"
    return "image/jpeg" if data.startswith(b"\xff\xd8") else "image/webp"


def _pair(form: str, data: bytes, at: int) -> tuple[int, int]:
    first, second = struct.unpack_from(form, data, at)
    return int(first), int(second)


def _jpeg(data: bytes) -> tuple[int, int]:
    at = 2
    while True:
        if data[at] != 0xFF:
            at += 1
            continue
        marker = data[at + 1]
        if marker in _FRAMES:
            height, width = _pair(">HH", data, at + 5)
            return width, height
        if marker == 0xFF or marker == 0x01 or 0xD0 <= marker <= 0xD8:
            at += 1 if marker == 0xFF else 2
            continue
        (length,) = struct.unpack_from(">H", data, at + 2)
        at += 2 + max(2, length)


def _webp(data: bytes) -> tuple[int, int]:
    match data[12:16]:
        case b"VP8X":
            width = int.from_bytes(data[24:27], "little") + 1
            return width, int.from_bytes(data[27:30], "little") + 1
        case b"VP8L":
            bits = int.from_bytes(data[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case _:
            width, height = _pair("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
