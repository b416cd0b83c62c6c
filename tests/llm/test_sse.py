"""The event-stream parser, on every way in which bytes can be cut."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.llm import sse
from croze.llm.sse import Event, EventTooLong, SSEParser


def parse(stream: bytes) -> list[Event]:
    return SSEParser().feed(stream)


@st.composite
def streams(draw: st.DrawFn) -> tuple[bytes, list[int]]:
    line = st.one_of(
        st.text(alphabet="dat:e vn\r\n\u00e4\u20ac\U0001f600\ufeff", max_size=20),
        st.sampled_from(["data: x", "data:", "event: e", ": note", "", "data: é€", "id: 4"]),
    )
    lines = draw(st.lists(line, max_size=12))
    ends = draw(st.lists(st.sampled_from(["\n", "\r", "\r\n"]), min_size=12, max_size=12))
    text = "".join(a + b for a, b in zip(lines, ends, strict=False))
    raw = (b"\xef\xbb\xbf" if draw(st.booleans()) else b"") + text.encode()
    return raw, draw(st.lists(st.integers(0, len(raw)), max_size=8))


@given(streams())
def test_any_split_of_the_bytes_gives_the_same_events(case: tuple[bytes, list[int]]) -> None:
    raw, cuts = case
    expected = parse(raw)
    bounds = [0, *sorted(cuts), len(raw)]
    parser = SSEParser()
    split = [e for a, b in itertools.pairwise(bounds) for e in parser.feed(raw[a:b])]
    assert split == expected
    parser = SSEParser()
    assert [e for i in range(len(raw)) for e in parser.feed(raw[i : i + 1])] == expected


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end_of_the_standard_ends_a_line(end: bytes) -> None:
    raw = end.join([b"event: a", b"data: 1", b"data: 2", b"", b"data:3", b"", b""])
    assert parse(raw) == [Event("a", b"1\n2"), Event("", b"3")]


def test_comments_unknown_fields_and_empty_events_are_passed_over() -> None:
    assert parse(b": ping\n\nid: 7\nretry: 5\n\nevent: x\n\ndata: y\n\n") == [Event("", b"y")]


def test_a_byte_order_mark_at_the_start_only_is_dropped() -> None:
    raw = b"\xef\xbb\xbfdata: \xef\xbb\xbf\n\n"
    assert parse(raw) == [Event("", b"\xef\xbb\xbf")]


def test_only_one_space_after_the_colon_belongs_to_the_field() -> None:
    assert parse(b"data:  x\n\ndata\n\n") == [Event("", b" x"), Event("", b"")]


def test_an_event_that_the_end_cuts_off_is_not_given() -> None:
    assert parse(b"data: 1\n\ndata: 2\n") == [Event("", b"1")]


def test_an_event_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT", 1000)
    parser = SSEParser()
    for _ in range(9):
        parser.feed(b"data: " + b"x" * 100)
    with pytest.raises(EventTooLong):
        parser.feed(b"data: " + b"x" * 100)


def test_many_small_events_are_not_one_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT", 1000)
    parser = SSEParser()
    assert sum(len(parser.feed(b"data: " + b"x" * 100 + b"\n\n")) for _ in range(50)) == 50
