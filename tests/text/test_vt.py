"""The screen model: what programs write, and what a person would see of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.text.grid import HISTORY
from croze.text.patterns import Pattern
from croze.text.vt import Mark, Screen


def shown(data, rows=6, columns=20):
    screen = Screen(rows, columns)
    screen.feed(data.encode())
    return screen


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("a\r\nb", "a\nb"),
        ("a\nb", "a\n b"),
        ("10%\r50%\r100%", "100%"),
        ("ab\b\bX", "Xb"),
        ("a\tb", "a       b"),
        ("\x1b[31mred\x1b[0m \x1b[1;38:2:1:2:3mbold\x1b[m", "red bold"),
        ("\x1b]0;title\x07on\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "onlink"),
        ("\x1b]0;broken\x1b[Hx", "x"),
        ("\x1bP1$r0m\x1b\\\x1b_apc\x1b\\x", "x"),
        ("one\x1b[3;5Htwo", "one\n\n    two"),
        ("abcdef\x1b[3D\x1b[K", "abc"),
        ("abcdef\x1b[3D\x1b[1K", "    ef"),
        ("a\r\nb\r\nc\x1b[2A\x1b[J", "a"),
        ("abc\x1b[2Jx", "   x"),
        ("abcd\x1b[1;2H\x1b[2P", "ad"),
        ("abcd\x1b[1;2H\x1b[2@", "a  bcd"),
        ("abcd\x1b[1;2H\x1b[2X", "a  d"),
        ("abcd\x1b[1;2H\x1b[4hXY\x1b[4l", "aXYbcd"),
        ("1\r\n2\r\n3\x1b[1;1H\x1b[L", "\n1\n2\n3"),
        ("1\r\n2\r\n3\x1b[1;1H\x1b[M", "2\n3"),
        ("\x1b[2;3r\x1b[2;1Ha\r\nb\r\nc", "\nb\nc"),
        ("1\r\n2\x1b[1;1H\x1bM0", "0\n1\n2"),
        ("a\x1b[5b", "aaaaaa"),
        ("\x1b(0lqk\x1b(B+", "┌─┐+"),
        ("\x1b)0\x0elqk\x0f+", "┌─┐+"),
        ("main\x1b[?1049h\x1b[Hother\x1b[?1049l", "main"),
        ("main\x1b[?1049h\x1b[Hother", "other"),
        ("\x1b7abc\x1b8X", "Xbc"),
        ("\x1b[?2004hx\x1b[?25l\x1b[>4;2m\x1b=", "x"),
        ("世界\b\bx", "世x"),
        ("世\r x", " x"),
        ("e\u0301a", "e\u0301a"),
        ("a\u202eb\u200bc", "abc"),
        ("\x1b[3\x18x\x1b[999999999;9Hy", "x" + "\n" * 5 + "        y"),
    ],
)
def test_what_is_written_is_what_is_seen(data, text):
    assert shown(data).text() == text


def test_a_line_wraps_at_the_edge_and_only_when_something_follows():
    screen = shown("x" * 20)
    assert (screen.y, screen.x) == (0, 19)
    screen.feed(b"\r\ny")
    assert screen.text() == "x" * 20 + "\ny"
    assert shown("x" * 21).text() == "x" * 20 + "\nx"
    assert shown("\x1b[?7l" + "x" * 21 + "y").text() == "x" * 19 + "y"
    assert shown("x" * 19 + "世").text() == "x" * 19 + "\n世"


def test_new_output_is_lines_and_wrapped_ones_are_whole():
    screen = shown(">>> ")
    mark = screen.mark()
    screen.feed(b"print('x' * 50)\r\n" + b"x" * 50 + b"\r\n>>> ")
    assert screen.since(mark) == (">>> print('x' * 50)\n" + "x" * 50 + "\n>>> ", 0)
    assert screen.since(mark, exact=True)[0].startswith("print(")
    assert not screen.drawn


def test_what_has_left_the_screen_is_still_known_up_to_a_limit():
    screen = shown("")
    screen.feed(b"".join(b"%d\r\n" % n for n in range(50)))
    text, missing = screen.since(Mark(0, 0))
    assert (text.split("\n"), missing) == ([*map(str, range(50)), ""], 0)
    screen.feed(b"".join(b"%d\r\n" % n for n in range(HISTORY)))
    text, missing = screen.since(Mark(0, 0))
    assert missing == 50 - 5
    assert len(text.split("\n")) == HISTORY + 6


def test_drawing_is_told_from_writing_line_by_line():
    assert not shown("a\r\nb\x1b[K\r\x1b[1Cc\x1b[A\x1b[J").drawn
    for drawing in ("\x1b[H", "\x1b[2J", "\x1b[?1049h", "\x1b[2;3r", "\x1b[4d", "\x1bM", "\x1b[L"):
        assert shown(drawing).drawn, drawing


def test_questions_of_programs_are_answered():
    screen = shown("ab\x1b[6n\x1b[c\x1b[5n")
    assert bytes(screen.answers) == b"\x1b[1;3R\x1b[?1;2c\x1b[0n"
    screen.feed(b"\x1b[6n" * 10_000)
    assert len(screen.answers) < 300


def test_another_size_keeps_what_fits():
    screen = shown("1\r\n2\r\n3\r\n4 long line\r\n5\r\n6", 6, 20)
    screen.resize(3, 6)
    assert screen.text() == "4 long\n5\n6"
    assert screen.since(Mark(0, 0))[0].split("\n")[:3] == ["1", "2", "3"]
    screen.resize(5, 40)
    screen.feed(b"!\r\n7")
    assert screen.text() == "4 long\n5\n6!\n7"


BITS = st.sampled_from(
    [
        b"\x1b[", b"\x1b]", b"\x1b", b"?1049h", b"?1049l", b"1;1H", b"99;99H", b"2J", b"K", b"L", b"M", b"P", b"@",
        b"X", b"S", b"T", b"2;4r", b"r", b"6n", b"4h", b"b", b"m", b"\x07", b"\x1b\\", b"\x1bM", b"\x1bD", b"\x1bc",
        b"\n", b"\r", b"\b", b"\t", b"\x0e", b"\x1b(0", b"text", b"\xe4\xb8\x96", b"\xcc\x81", b"\xff", b"1", b";",
        b"?7l", b"?6h", b"A", b"B", b"C", b"D", b"d", b"G", b" " * 25, b"x" * 25,
    ]
)  # fmt: skip


@given(st.lists(BITS, max_size=60), st.integers(1, 7), st.integers(1, 9))
def test_nothing_breaks_the_screen_and_pieces_make_no_difference(bits, rows, columns):
    data = b"".join(bits)
    whole, pieces = Screen(rows, columns), Screen(rows, columns)
    whole.feed(data)
    for at in range(len(data)):
        pieces.feed(data[at : at + 1])
    for screen in (whole, pieces):
        assert len(screen._cells) == len(screen._wrapped) == screen.rows
        assert all(len(row) == screen.columns for row in screen._cells)
        assert 0 <= screen.y < screen.rows
        assert 0 <= screen.x < screen.columns
        assert "\x1b" not in screen.text() + screen.since(Mark(0, 0))[0]
    assert whole.text() == pieces.text()
    assert whole.mark() == pieces.mark()
    whole.resize(columns, rows)
    whole.feed(data)
    assert all(len(row) == whole.columns for row in whole._cells)


@pytest.mark.parametrize(
    "good", [r">>> $", r"\(Pdb\) $", r"port \d+", r"^\$ ", r"[*+]a*", r"a{3}", r"(a|b)c"]
)
def test_useful_patterns_are_taken(good):
    Pattern(good)


@pytest.mark.parametrize(
    "bad", ["(a+)+", "(a|b)*", "((a)|b)+", "a*a*a*a*", "(", "(a{2,})*", "x" * 301]
)
def test_patterns_that_could_take_too_long_are_not(bad):
    with pytest.raises(ValueError, match=r"."):
        Pattern(bad)


def test_a_pattern_is_looked_for_in_the_last_lines():
    assert Pattern("^two$").found_in("one\ntwo\nthree")
    assert not Pattern("^one$").found_in("one\n" + "x\n" * 100)
