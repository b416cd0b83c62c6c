"""Bytes as text and back: encoding, BOM and line ends stay as they were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.edit.source import edited, is_binary, lf, read_source, rewritten
from croze.edit.values import Change, EditPlan, Refusal


def change(data, start, end, *lines):
    source = read_source(data)
    return edited(source, EditPlan(source.text, (Change(start, end, lines),)))


@pytest.mark.parametrize(
    ("data", "encoding", "newline"),
    [
        (b"a\nb", "utf-8", "\n"),
        (b"\xef\xbb\xbfa\r\nb\r\n", "utf-8", "\r\n"),
        ("ä\r\n".encode("latin-1"), "latin-1", "\r\n"),
        (b"\xff\xfe" + "ä\n".encode("utf-16-le"), "utf-16-le", "\n"),
        (b"\xfe\xff" + "ä\r\n".encode("utf-16-be"), "utf-16-be", "\r\n"),
        (b"\xff\xfe\x00\x00" + "ä\n".encode("utf-32-le"), "utf-32-le", "\n"),
        (b"a\rb\r", "utf-8", "\r"),
        (b"", "utf-8", "\n"),
    ],
)
def test_a_files_form_is_read_and_written_back(data, encoding, newline):
    source = read_source(data)
    assert (source.encoding, source.newline) == (encoding, newline)
    assert "\r" not in source.text
    assert rewritten(source, source.text) == data


@pytest.mark.parametrize(
    "data",
    [b"\0", b"text\n" * 20_000 + b"\0", bytes(range(32)) * 10, b"\xff\xfe\x00", b"\x7fELF\x01\x01"],
)
def test_what_is_no_text_is_binary(data):
    assert read_source(data) is None


def test_escape_sequences_and_form_feeds_are_text():
    assert not is_binary(b"\x1b[31mred\x1b[0m\x0c\n" * 10)


def test_mixed_line_ends_stay_line_by_line():
    data = b"a\r\nb\nc\r\nd"
    assert change(data, 1, 2, "B") == b"a\r\nB\nc\r\nd"
    assert change(data, 0, 1, "A", "A2") == b"A\r\nA2\r\nb\nc\r\nd"
    assert change(data, 1, 3) == b"a\r\nd"
    assert change(data, 3, 4, "x", "y") == b"a\r\nb\nc\r\nx\r\ny"
    assert change(data, 3, 4) == b"a\r\nb\n"[:0] + b"a\r\nb\nc"


def test_a_lone_carriage_return_is_content_where_lines_end_otherwise():
    assert change(b"a\rb\nc\n", 1, 2, "C") == b"a\rb\nC\n"
    assert change(b"a\r\r\nc\r\n", 1, 2, "C") == b"a\r\r\nC\r\n"


def test_a_character_that_the_encoding_lacks_is_refused():
    source = read_source("ä\n".encode("latin-1"))
    refusal = rewritten(source, "→\n")
    assert isinstance(refusal, Refusal)
    assert "latin-1" in refusal.message
    assert "U+2192" in refusal.message
    assert isinstance(rewritten(read_source(b"a\n"), "\ud800"), Refusal)


@given(
    st.lists(
        st.tuples(st.text(alphabet="ab\r é", max_size=3), st.sampled_from(["\n", "\r\n"])),
        max_size=8,
    )
)
def test_every_text_comes_back_byte_for_byte(lines):
    data = "".join(line + end for line, end in lines).encode()
    source = read_source(data)
    assert edited(source, EditPlan(source.text, ())) == data
    assert lf(data.decode()).count("\n") == data.count(b"\n")


@given(st.binary())
def test_any_bytes_are_text_that_comes_back_or_binary(data):
    source = read_source(data)
    assert source is None or edited(source, EditPlan(source.text, ())) == data
