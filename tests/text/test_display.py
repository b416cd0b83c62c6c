"""Showing text from outside: no escape sequence reaches a terminal (incident 37)."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.text.display import one_line, safe

ESC = "\x1b"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"{ESC}[31mred{ESC}[0m", "red"),
        (f"a{ESC}[2J{ESC}[1;1Hb", "ab"),
        (f"{ESC}]0;title\x07x", "x"),
        (f"{ESC}]8;;http://evil.invalid{ESC}\\link{ESC}]8;;{ESC}\\", "link"),
        (f"{ESC}]52;c;ZXZpbA==\x07x", "x"),
        (f"{ESC}P+q544e{ESC}\\x", "x"),
        ("\x9b31mred", "red"),
        ("\x9d0;title\x9cx", "x"),
        (f"{ESC}c{ESC}(0x", "x"),
        (f"{ESC}", "\u241b"),
        (f"{ESC}]0;never ends", "\u241b]0;never ends"),
        ("a\rb", "a\nb"),
        ("a\r\nb", "a\nb"),
        ("a\x08b\x7fc\x00", "a\u2408b\u2421c\u2400"),
        ("a\x85b", "a\\x85b"),
        ("safe\u202egpj.exe", "safe\\u202egpj.exe"),
        ("\u2066x\u2069", "\\u2066x\\u2069"),
        ("a\U000e0041b", "a\\U000e0041b"),
        ("a\ud800b", "a\ufffdb"),
        ("tab\tstays, ünïcode 你好 👍🏽 too", "tab\tstays, ünïcode 你好 👍🏽 too"),
    ],
)
def test_sequences_vanish_and_deceiving_characters_become_visible(text: str, shown: str) -> None:
    assert safe(text) == shown


def test_kept_colours_end_with_a_reset_and_conceal_nothing() -> None:
    assert safe(f"{ESC}[31mred", keep_sgr=True) == f"{ESC}[31mred{ESC}[0m"
    assert safe(f"{ESC}[8mhidden", keep_sgr=True) == "hidden"
    assert safe(f"{ESC}[1;08mhidden", keep_sgr=True) == f"{ESC}[1mhidden{ESC}[0m"
    assert safe(f"{ESC}[38;5;8mgrey{ESC}[0m", keep_sgr=True) == f"{ESC}[38;5;8mgrey{ESC}[0m"
    assert safe(f"{ESC}[2Jx{ESC}]0;t\x07", keep_sgr=True) == "x"


def test_one_line_is_cut_by_cells() -> None:
    assert one_line("a\n  b\tc", 20) == "a b c"
    assert one_line("abcdef", 6) == "abcdef"
    assert one_line("abcdefg", 6) == "abcde…"
    assert one_line("你好世界", 8) == "你好世界"
    assert one_line("你好世界", 7) == "你好世…"
    assert one_line("你好世界", 6) == "你好…"
    assert one_line("abc", 0) == ""


PIECES = (
    *(ESC, f"{ESC}[", f"{ESC}]", f"{ESC}P", "\x9b", "\x9d", "\x9c", "\x07", "\\", "m", "8", ";"),
    *("31m", "\r", "\n", "\u202e", "\ud800", f"{ESC}[31m", f"{ESC}[8m", f"{ESC}{ESC}[31m"),
)
_SGR = re.compile(r"\x1b\[[0-9;:]*m")
TEXTS = st.lists(
    st.one_of(
        st.text(max_size=5),
        st.sampled_from(PIECES),
    ),
    max_size=12,
).map("".join)


def assert_harmless(text: str) -> None:
    for char in text:
        assert char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs"), repr(char)
        assert unicodedata.bidirectional(char) not in (
            "RLE", "LRE", "RLO", "LRO", "PDF", "RLI", "LRI", "FSI", "PDI",
        )  # fmt: skip


@given(TEXTS)
def test_what_is_shown_holds_no_control_and_no_bidi_character(text: str) -> None:
    assert_harmless(safe(text))
    assert "\n" not in safe(text, keep_newlines=False)


@given(TEXTS)
def test_with_colours_kept_only_whole_colour_sequences_pass(text: str) -> None:
    assert_harmless(_SGR.sub("", safe(text, keep_sgr=True)))


@given(TEXTS)
def test_showing_shown_text_changes_nothing(text: str) -> None:
    assert safe(safe(text)) == safe(text)


@given(TEXTS, st.integers(1, 30))
def test_one_line_keeps_to_its_width(text: str, width: int) -> None:
    line = one_line(text, width)
    assert_harmless(line)
    assert "\n" not in line
    cells = sum(
        0
        if unicodedata.combining(c) or c == "\u200d"
        else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in line
    )
    assert cells <= width
