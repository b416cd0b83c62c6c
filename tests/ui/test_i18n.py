"""Messages in the user's language."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripts.messages import messages, places, problems, quoted

from croze.types.errors import ConversationNotFound, CrozeError
from croze.ui.i18n import (
    _,
    catalogue,
    choose_language,
    explain,
    explain_code,
    parse_po,
    use_language,
)
from tests.ui.conftest import Shell


@pytest.fixture
def chinese():
    use_language("zh_CN")
    yield
    use_language("en")


def test_every_message_has_a_chinese_text_with_the_same_places() -> None:
    assert list(problems("zh_CN")) == []


def test_every_message_can_be_filled_in() -> None:
    for text in (*messages(), *catalogue("zh_CN").values()):
        assert text.format(**dict.fromkeys(places(text), 1))


@pytest.mark.parametrize(
    ("configured", "env", "language"),
    [
        ("auto", {}, "en"),
        ("auto", {"LANG": "zh_CN.UTF-8"}, "zh_CN"),
        ("auto", {"LANG": "zh_TW.UTF-8"}, "zh_CN"),
        ("auto", {"LANG": "de_DE.UTF-8"}, "en"),
        ("auto", {"LANG": "zh_CN.UTF-8", "LC_ALL": "en_US.UTF-8"}, "en"),
        ("auto", {"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, "zh_CN"),
        ("auto", {"LANG": "en_US.UTF-8", "LANGUAGE": "zh_CN:en"}, "zh_CN"),
        ("auto", {"LANG": "C", "LANGUAGE": "zh_CN"}, "en"),
        ("en", {"LANG": "zh_CN.UTF-8"}, "en"),
        ("zh_CN", {"LANG": "en_US.UTF-8"}, "zh_CN"),
    ],
)
def test_configuration_wins_over_the_locale(
    configured: str, env: dict[str, str], language: str
) -> None:
    assert choose_language(configured, env) == language


def test_the_configured_language_speaks_from_the_first_message_on(shell: Shell) -> None:
    shell.run("config", "set", "ui.language", "zh_CN")
    assert "没有命令" in shell.run("nope").err
    shell.env["CROZE_UI__LANGUAGE"] = "en"
    assert "there is no command" in shell.run("nope").err


@pytest.mark.usefixtures("chinese")
def test_errors_are_translated_by_code_and_params() -> None:
    error = ConversationNotFound("There is no session 'x'", hint="look", session="x")
    text, hint = explain(error)
    assert "x" in text
    assert "会话" in text
    assert "croze session list" in hint


@pytest.mark.usefixtures("chinese")
@pytest.mark.usefixtures("chinese")
@pytest.mark.parametrize(
    "code", ["rule_file_problem", "agent_files_skipped", "agent_not_as_written", "agent_broken"]
)
def test_the_reason_that_a_warning_on_a_file_gives_is_translated_too(code: str) -> None:
    reason = "it has no description; .a/b.md leads out of the workspace"
    names = ("file", "agent", "path", "more")
    params = dict.fromkeys(names, "x") | {"reason": reason}
    text, _hint = explain_code(code, "", "", params)
    assert "它没有 description; .a/b.md 指向工作区之外" in text


def test_an_error_without_an_entry_or_with_other_params_stays_english() -> None:
    assert explain(CrozeError("plain", hint="next", code="nobody_knows")) == ("plain", "next")
    assert explain(ConversationNotFound("no params"))[0] == "no params"


@pytest.mark.usefixtures("chinese")
def test_braces_in_values_are_no_places() -> None:
    assert _("nothing {odd}", odd="{x}") == "nothing {x}"


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), min_size=1),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), min_size=1),
    )
)
def test_a_catalogue_reads_back_as_it_was_written(entries: dict[str, str]) -> None:
    text = "".join(f"msgid {quoted(k)}\nmsgstr {quoted(v)}\n\n" for k, v in entries.items())
    assert parse_po(text) == {("", k): v for k, v in entries.items()}


def test_a_catalogue_has_contexts_long_texts_comments_and_fuzzy_entries() -> None:
    text = (
        'msgid ""\nmsgstr "Language: x\\n"\n\n# note\n#: place\nmsgctxt "error"\nmsgid "a"\n'
        'msgstr ""\n"one "\n"two"\n#, fuzzy\nmsgid "b"\nmsgstr "no"\n\nmsgid "c"\nmsgstr ""\n'
        'msgid "d"\nmsgstr "\\"d\\"\\t"\n'
    )
    assert parse_po(text) == {("error", "a"): "one two", ("", "d"): '"d"\t'}


@pytest.mark.parametrize("line", ['msgid_plural "x"', "msgid x", '"lost"', "msgstr"])
def test_a_line_that_can_not_be_read_is_named(line: str) -> None:
    with pytest.raises(ValueError, match="line 2"):
        parse_po(f"\n{line}\n")
