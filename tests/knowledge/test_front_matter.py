"""Front matter: what people write is read as they mean it, and nothing that they write breaks anything."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from croze.knowledge.front_matter import MOST_CHARACTERS, parse


def test_a_text_without_front_matter_is_all_body() -> None:
    for text in ("", "words", "# Title\n---\nname: a\n---\n", "----\nname: a\n----\n"):
        found = parse(text)
        assert (found.body, found.present, dict(found.fields)) == (text, False, {})


def test_values_stay_the_text_that_was_written() -> None:
    found = parse("---\nname: yes\nversion: 1.0\nsince: 2024-01-01\n---\nbody\n")
    assert found.fields == {"name": "yes", "version": "1.0", "since": "2024-01-01"}
    assert found.body == "body\n"


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("tools: *", "*"),
        ("globs: *.py,**/*.ts", "*.py,**/*.ts"),
        ("globs: !vendor/**", "!vendor/**"),
        ("description: Use it so: first this, then that", "Use it so: first this, then that"),
        ("description: it's a user's: all of it", "it's a user's: all of it"),
        ("description: @here `now`: go", "@here `now`: go"),
        ("description: 50%: half", "50%: half"),
    ],
)
def test_a_plain_value_that_is_syntax_in_yaml_is_read_as_it_stands(line: str, value: str) -> None:
    name = line.partition(":")[0]
    found = parse(f"---\nfirst: 1\n{line}\n---\nbody")
    assert found.problem == ""
    assert found.fields == {"first": "1", name: value}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("---\na: [1,\n---\n", "line 3: "),
        ("---\na: 1\na: 2\n---\n", "line 3: a name stands twice"),
        ("---\n- a\n---\n", "it must be names with values"),
        ("---\nx:\n  a: &b [1]\n  c: *b\n---\n", "line 3: anchors and aliases are not taken"),
        ("---\nname: a\nbody without an end", "is not closed by ---"),
        ("---\nname: \x07\n---\n", "control characters"),
        ("---\n" + "[" * 5_000 + "\n---\n", "it nests too deep"),
        ("---\n" + "a: b\n" * MOST_CHARACTERS + "---\n", "has more than 16,000 characters"),
    ],
)
def test_what_cannot_be_read_says_why_and_leaves_the_whole_text(text: str, problem: str) -> None:
    found = parse(text)
    assert problem in found.problem
    assert (found.body, dict(found.fields), found.present) == (text, {}, True)


def test_little_text_never_unfolds_into_much() -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n"
    for one, two in zip("abcdefgh", "bcdefghi", strict=True):
        bomb += f"{two}: &{two} [{','.join([f'*{one}'] * 9)}]\n"
    found = parse(f"---\n{bomb}---\n")
    assert len(repr(found.fields)) < 10 * len(bomb)


def test_tags_make_no_objects() -> None:
    found = parse("---\nx: !!python/object/apply:os.system [id]\n---\n")
    assert found.fields == {"x": "!!python/object/apply:os.system [id]"}


def test_lists_come_as_yaml_or_as_text_with_commas() -> None:
    for value in (" a, b ,,a", " [a, b, a]", "\n  - a\n  - b"):
        assert parse(f"---\ntools:{value}\n---\n").words("tools") == ("a", "b")
    for value in ("", " []", ' ""', " ~", " null"):
        assert parse(f"---\ntools:{value}\n---\n").words("tools") == ()
    assert parse("---\nname: a\n---\n").words("tools") is None


@pytest.mark.parametrize("value", ["{a: b}", "[{a: b}]", "[[a]]"])
def test_a_list_of_something_else_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="tools must be"):
        parse(f"---\ntools: {value}\n---\n").words("tools")


def test_flags_are_yes_or_no_in_yamls_words() -> None:
    found = parse("---\na: True\nb: off\nc: maybe\nd: [x]\ne:\n---\n")
    assert (found.flag("a"), found.flag("b"), found.flag("e"), found.flag("f")) == (
        True, False, False, False,
    )  # fmt: skip
    assert found.flag("f", default=True)
    for name in "cd":
        with pytest.raises(ValueError, match=f"{name} must be"):
            found.flag(name)


@given(st.text())
def test_no_text_at_all_breaks_the_reader(text: str) -> None:
    for each in (text, f"---\n{text}\n---\nbody", f"---\n{text}"):
        found = parse(each)
        assert each.endswith(found.body)
        assert found.body == each or found.present


KEYS = st.from_regex(r"[a-z][a-z_]{0,10}", fullmatch=True)
VALUES = st.text(
    alphabet=st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Cf", "Zl", "Zp", "Co")),
    max_size=40,
).filter(lambda text: text == text.strip() and text.lower() not in {"~", "null"})


@given(st.dictionaries(KEYS, st.one_of(VALUES, st.lists(VALUES, max_size=4)), max_size=5))
def test_what_yaml_writes_comes_back_as_it_was(fields: dict[str, str | list[str]]) -> None:
    text = yaml.safe_dump(fields, allow_unicode=True) if fields else ""
    found = parse(f"---\n{text}---\nthe body\n")
    assert found.fields == fields
    assert found.body == "the body\n"
    for name, value in fields.items():
        if isinstance(value, str):
            assert found.text(name) == value


@given(KEYS, VALUES)
def test_a_value_on_one_line_needs_no_quotes(name: str, value: str) -> None:
    if value[:1] in "\"'[{|>#-?&*!," or " #" in value or value.startswith(("---", "...")):
        return
    found = parse(f"---\n{name}: {value}\n---\n")
    assert found.problem == ""
    assert found.fields == {name: value}
