"""Redaction of streams: the pieces that come out, joined, are the redacted whole, and come at once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from croze.text.redact import MARK, redact
from croze.text.stream_redact import _LARGE, MOST_HELD, StreamRedactor, _hits_of
from tests.text.secret_corpus import BODY, HARMLESS, KEYS, SECRETS, joined, made

CASES = [text for text, _ in SECRETS] + HARMLESS
HEAD = joined("-----BEGIN ", "RSA PRIVATE KEY-----")
FOOT = joined("-----END ", "RSA PRIVATE KEY-----")
PROSE = (
    "The parser reads one token at a time, and the password must never reach the log; ask the user for "
    "a key when none is set. Then, as a secret is to begin early, begin: authorize, cook, and go on!\n"
)


def streamed(text: str, cuts: list[int]) -> str:
    redactor = StreamRedactor()
    out, at = [], 0
    for cut in [*sorted(cuts), len(text)]:
        out.append(redactor.feed(text[at:cut]))
        at = cut
    return "".join((*out, redactor.finish()))


@pytest.mark.parametrize("text", CASES, ids=[text[:32] for text in CASES])
def test_a_text_that_comes_letter_by_letter_is_redacted_like_the_whole(text: str) -> None:
    for whole in (text, f"see {text} there", f"hello\n{text}\nmore\n"):
        assert streamed(whole, list(range(1, len(whole)))) == redact(whole)[0]


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.sampled_from(CASES), min_size=1, max_size=6),
    st.sampled_from(("\n", " ", "\n\n", ", ")),
    st.lists(st.integers(0, 2_000), max_size=12),
)
def test_every_split_gives_the_same_text(texts: list[str], gap: str, cuts: list[int]) -> None:
    whole = gap.join(texts) if gap.startswith("\n") else texts[0] + gap + PROSE
    assert streamed(whole, [cut % (len(whole) + 1) for cut in cuts]) == redact(whole)[0]


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab sk-1AZ_:=\"'\n.@/password", max_size=80), st.integers(1, 7))
def test_any_text_in_any_steps_gives_the_same_text(text: str, step: int) -> None:
    assert streamed(text, list(range(step, len(text), step))) == redact(text)[0]


def test_a_private_key_over_many_pieces_is_masked_and_what_follows_is_not() -> None:
    text = f"before\n{HEAD}\n{BODY}\n{BODY}\n{FOOT}\nafter the key"
    want = f"before\n{HEAD}{MARK}{FOOT}\nafter the key"
    assert redact(text)[0] == want
    for step in (1, 3, 20, 64, 500):
        assert streamed(text, list(range(step, len(text), step))) == want


def test_a_private_key_without_an_end_is_masked_from_its_begin_on() -> None:
    redactor = StreamRedactor()
    out = [redactor.feed(f"x {HEAD}\n")]
    line = made(64) + "\n"
    for _ in range(3 * MOST_HELD // len(line)):
        out.append(redactor.feed(line))
    out += (redactor.feed(f"{FOOT}\nbye "), redactor.finish())
    assert "".join(out) == f"x {HEAD}{MARK}{FOOT}\nbye "


def test_no_more_is_held_back_than_the_longest_block() -> None:
    redactor = StreamRedactor()
    given_, got = 0, 0
    for piece in (
        f"password: |\n{'  a1b2c3d4' * 20}\n",
        f"{HEAD}\n",
        *["a1B2" * 40 + "\n"] * 1_500,
    ):
        given_ += len(piece)
        got += len(redactor.feed(piece))
    assert given_ > 3 * MOST_HELD
    assert len(redactor.finish()) <= MOST_HELD


def test_prose_is_delayed_by_no_more_than_a_word() -> None:
    redactor = StreamRedactor()
    shown = ""
    for at, char in enumerate(PROSE):
        shown += redactor.feed(char)
        words = PROSE[: at + 1].rstrip().rsplit(" ", 2)
        assert len(shown) >= len(" ".join(words[:-2])), (PROSE[: at + 1], shown)
    assert shown + redactor.finish() == PROSE


def test_plain_words_and_signs_pass_at_once() -> None:
    redactor = StreamRedactor()
    for piece in ("Here", " we", " will", " look", " into", ":", "\n", "...", "ok", "..", "结果是"):
        assert redactor.feed(piece) == piece


def test_a_key_is_never_shown_in_part() -> None:
    for name, key in KEYS.items():
        if name == "telegram":
            continue
        redactor = StreamRedactor()
        shown = "".join(redactor.feed(char) for char in f"It is {key}")
        assert key[:12] not in shown, name
        assert shown + redactor.finish() == f"It is {MARK}"


def test_a_text_that_goes_on_with_an_earlier_one_is_seen_in_its_light() -> None:
    redactor = StreamRedactor(before="Authorization: Bearer ")
    assert redactor.feed(f"{made(32)} and") + redactor.finish() == f"{MARK} and"


def test_the_middle_of_a_long_line_without_blanks_passes() -> None:
    text = "var a=[" + ",".join(f"{{k:{n}}}" for n in range(20_000)) + "];"
    redactor = StreamRedactor()
    shown = "".join(redactor.feed(text[at : at + 1_000]) for at in range(0, len(text), 1_000))
    assert len(shown) > len(text) - 20_000
    assert shown + redactor.finish() == text


WORDS = ("authorization", "sshpass", "passwd", "password", "pass", "token", "key", "docker", " login ",
         "://", "-----begin ", "private-lines: ", "data:", '"data"', '"data\\"', "cookie", "a", "=", "\n")  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), max_size=40))
def test_what_has_to_do_with_secrets_is_found_alike_in_small_and_large_pieces(
    words: list[str],
) -> None:
    text = "".join(words)[: _LARGE - 1]
    assert list(_hits_of(text + " " * _LARGE)) == list(_hits_of(text))
