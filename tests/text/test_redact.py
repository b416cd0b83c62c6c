"""Redaction: what is a secret goes, what only looks like one stays."""

import configparser
import json
import sys
import tomllib
from collections.abc import Callable

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from croze.text.redact import MARK, begun_anew, ended_early, redact, redact_value
from croze.text.secret_rules import PREFIXES, RULES, STARTS
from tests.text.secret_corpus import (
    BODY,
    EXAMPLE_KEY,
    HARMLESS,
    KEYS,
    SECRETS,
    SKIPPED,
    joined,
    made,
)

KEY = made(48)


@pytest.mark.parametrize(("text", "secret"), SECRETS, ids=[text[:32] for text, _ in SECRETS])
def test_a_secret_is_replaced_and_nothing_else(text: str, secret: str) -> None:
    assert redact(text) == (text.replace(secret, MARK), 1)


@pytest.mark.parametrize("text", HARMLESS, ids=[text[:32] for text in HARMLESS])
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert redact(text) == (text, 0)


def test_the_corpus_is_large_and_each_key_begins_as_streams_expect() -> None:
    assert len(SECRETS) >= 150
    assert len(HARMLESS) >= 150
    for name, key in KEYS.items():
        assert key.startswith(STARTS) or name in SKIPPED, name


KINDS = ("RSA ", "", "OPENSSH ", "EC ", "ENCRYPTED ", "DSA ")


@pytest.mark.parametrize("kind", KINDS)
def test_a_private_key_goes_and_its_frame_stays_even_when_the_text_ends_in_it(kind: str) -> None:
    head, foot = (joined("-----", word, f" {kind}PRIVATE KEY-----") for word in ("BEGIN", "END"))
    whole = f"a\n{head}\n{BODY}\n{foot}\nb"
    assert redact(whole) == (f"a\n{head}{MARK}{foot}\nb", 1)
    assert redact(whole[:200]) == (f"a\n{head}{MARK}", 1)


def test_the_headers_of_a_private_key_do_not_hide_it() -> None:
    head = joined("-----BEGIN ", "PGP PRIVATE KEY BLOCK-----")
    foot = joined("-----END ", "PGP PRIVATE KEY BLOCK-----")
    text = f"{head}\nVersion: GnuPG v2 (GNU/Linux)\nComment: x\n\n{BODY}\n=abCD\n{foot}"
    assert redact(text) == (f"{head}{MARK}{foot}", 1)
    rsa = joined("-----BEGIN ", "RSA PRIVATE KEY-----")
    text = f"{rsa}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00AA\n\n{BODY}"
    assert redact(text) == (f"{rsa}{MARK}", 1)


def test_a_private_key_with_line_numbers_in_json_or_of_putty_goes() -> None:
    head = joined("-----BEGIN ", "PRIVATE KEY-----")
    rows = [head, *BODY.split("\n"), "-----END PRIVATE KEY-----"]
    numbered = redact("\n".join(f"{n}\t{row}" for n, row in enumerate(rows, 1)))
    assert numbered[1] == 1
    assert made(20) not in numbered[0]
    account = json.dumps({"private_key": "\n".join(rows) + "\n", "client_email": "a@b.c"})
    shown, count = redact(account)
    assert count == 1
    assert json.loads(shown)["client_email"] == "a@b.c"
    assert made(20) not in shown
    lines = joined("Private-", "Lines: 4\n")
    putty = f"{lines}{BODY}\nPrivate-MAC: 00"
    assert redact(putty) == (f"{lines}{MARK}\nPrivate-MAC: 00", 1)


def test_what_is_cut_off_shows_no_half_of_a_secret() -> None:
    assert begun_anew("er2secret\nnext\n") == "next\n"
    assert begun_anew(f"xyz\n{BODY}\nend\n") == f"{MARK}\nend\n"
    assert begun_anew("no line here") == "no line here"
    assert ended_early("first\nsk-half") == "first\n"
    assert ended_early("no line here") == "no line here"


def test_letters_that_grow_when_lowered_do_not_shift_what_is_taken() -> None:
    assert redact("İİİİ password: hunter2") == (f"İİİİ password: {MARK}", 1)


def test_values_are_redacted_wherever_they_stand() -> None:
    value = {
        "command": "curl -u bob https://bob:hunter2@x.y",
        "env": {"API_TOKEN": "letmein-now", "PATH": "/bin"},
        "list": ["password=hunter2", 3, None],
        "password": "short words",
    }
    assert redact_value(value) == (
        {
            "command": f"curl -u bob https://bob:{MARK}@x.y",
            "env": {"API_TOKEN": MARK, "PATH": "/bin"},
            "list": [f"password={MARK}", 3, None],
            "password": "short words",
        },
        3,
    )


def test_a_very_long_secret_goes_as_a_whole() -> None:
    long = "a1B2" * 500
    assert redact(f"PASSWORD={long}\nnext") == (f"PASSWORD={MARK}\nnext", 1)


def test_documented_examples_stay() -> None:
    assert redact(f"aws_secret_access_key={EXAMPLE_KEY}")[1] == 0


NAMES = st.sampled_from(("password", "api_key", "client_secret", "accessToken", "db_passwd"))
VALUES = st.text(alphabet="abcXYZ019-_+/=.:@ \"'\\#{}[]<>&,;\n", min_size=1, max_size=24).map(
    lambda text: f"a1{text}Z9"
)
OTHERS = st.dictionaries(
    st.sampled_from(("host", "port", "name", "color", "path", "note")),
    st.text(alphabet="abcdef /.", min_size=1, max_size=12),
    max_size=4,
)
Form = tuple[Callable[[dict[str, str]], str], Callable[[str], dict[str, str]]]


def _toml(values: dict[str, str]) -> str:
    return "\n".join(f"{name} = {json.dumps(value)}" for name, value in values.items())


def _ini(values: dict[str, str]) -> str:
    return "[x]\n" + "\n".join(f"{name} = {value}" for name, value in values.items())


def _read_ini(text: str) -> dict[str, str]:
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    return dict(parser["x"])


FORMS: dict[str, Form] = {
    "json": (json.dumps, json.loads),
    "pretty json": (lambda values: json.dumps(values, indent=2), json.loads),
    "toml": (_toml, tomllib.loads),
    "yaml": (lambda values: yaml.safe_dump(values, allow_unicode=True), yaml.safe_load),
    "quoted yaml": (lambda values: yaml.safe_dump(values, default_style='"'), yaml.safe_load),
}


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=120, deadline=None)
@given(OTHERS, NAMES, VALUES)
def test_redacted_data_can_still_be_read_and_only_the_secret_has_changed(
    form: str, others: dict[str, str], name: str, value: str
) -> None:
    dump, load = FORMS[form]
    values = {**others, name: value}
    shown = load(redact(dump(values))[0])
    assert {key: shown[key] for key in others} == others
    assert set(shown) == set(values)


@settings(max_examples=60, deadline=None)
@given(NAMES, st.text(alphabet="abcXYZ019-_@", min_size=6, max_size=24))
def test_a_plain_secret_goes_in_every_form(name: str, value: str) -> None:
    value = f"q7123{value}Z9"
    for dump, load in (*FORMS.values(), (_ini, _read_ini)):
        shown = load(redact(dump({"host": "a", name: value}))[0])
        assert shown == {"host": "a", name: MARK}


FRAGMENTS = st.sampled_from(
    [secret for text, secret in SECRETS]
    + [text for text, _ in SECRETS]
    + HARMLESS
    + [" ", "\n", '"', "'", "=", ":", "-", "_", ".", ",", "@", "://", "\\n", MARK]
    + ["password=", "sk-", "\n  ", "data:\n", "kind: Secret\n", "Cookie: ", "<key>", "value"]
)
TEXTS = st.lists(st.one_of(FRAGMENTS, st.text(max_size=6)), max_size=8).map("".join)


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_redacting_twice_changes_nothing(text: str) -> None:
    once, _ = redact(text)
    assert redact(once) == (once, 0)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([case for case in SECRETS if "\n" not in case[0]]),
    st.text(alphabet="abc .\n", max_size=20),
    st.text(alphabet="abc .\n", max_size=20),
)
def test_a_secret_on_a_line_of_its_own_goes_whatever_stands_round_it(
    case: tuple[str, str], before: str, after: str
) -> None:
    text, secret = case
    assert secret not in redact(f"{before}\n{text}\n{after}")[0]


HOSTILE = (
    *(f"{rule.anchor}" for rule in RULES),
    *(f" {rule.anchor}a1" for rule in RULES),
    *(f"{prefix.pattern.split('[')[0].split('(')[0]}a1 " for prefix in PREFIXES),
    *("password", "password=", 'password="', "password: |\n", "token='", "key:", "api_key="),
    *(
        ":",
        "=",
        "-",
        "_",
        ".",
        "'",
        '"',
        "\\",
        " ",
        "\n",
        "://a:",
        "eyJa.",
        "a1B2-",
        "Cookie: a=1;",
    ),
    *("data:\n  a", "kind: Secret\ndata:\n", '"data":{', "<password ", "{a{", "-----BEGIN "),
    joined("-----BEGIN ", "PRIVATE KEY-----"),
    joined("-----BEGIN ", "PRIVATE KEY-----\nAAAA"),
    *("name: password\nvalue", "Private-Lines: 1\nA", "M.aaaaaa.", " login a", "curl -u a:"),
)


def _calls(work: Callable[[], object]) -> int:
    """How many functions a piece of work calls, of C and of Python."""
    count = 0

    def tell(_frame: object, event: str, _arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(tell)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("piece", sorted(set(HOSTILE)))
def test_the_work_grows_with_the_text_and_no_faster(piece: str) -> None:
    """Each call looks at a bounded stretch, so the number of calls is the measure."""
    small = piece * (4_000 // len(piece) + 1)
    redact(small)
    few, many = _calls(lambda: redact(small)), _calls(lambda: redact(small * 4))
    assert many <= 6 * few + 400
