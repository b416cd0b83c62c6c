"""A prompt is a function whose template renders the variables that the function returns."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.context.prompt import PromptError, PromptFunction, prompt


@prompt()
def greeting(name, things=()):
    """
    Hello {{ name }}.
    {% for thing in things %}
      - {{ thing }}
    {% endfor %}
    Bye.
    """
    return {"name": name, "things": things}


@prompt()
def letter(body):
    """Dear reader,
    {{ body }}"""
    return {"body": body}


class Agent:
    def __init__(self, name: str) -> None:
        self.name = name

    @prompt()
    def motto(self):
        """{{ name }} works."""
        return {"name": self.name}

    @prompt()
    def card(self, title):
        """{{ title }}: {{ motto }}"""
        return {"title": title, "motto": self.motto}


def test_calling_gives_the_variables_and_prompt_renders_them():
    assert greeting("Ann") == {"name": "Ann", "things": ()}
    assert greeting.prompt("Ann", things=["a", "b"]) == "Hello Ann.\n  - a\n  - b\nBye."


def test_a_prompt_keeps_its_functions_name_and_docstring():
    assert greeting.__name__ == "greeting"
    assert "{{ name }}" in (greeting.__doc__ or "")
    assert isinstance(greeting, PromptFunction)


def test_prompts_nest_as_text_and_as_prompts():
    assert letter.prompt(greeting.prompt("Ann")) == "Dear reader,\nHello Ann.\nBye."
    assert Agent("croze").card.prompt("Agent") == "Agent: croze works."


def test_methods_are_bound_to_their_object():
    one, two = Agent("one"), Agent("two")
    assert one.motto.prompt() == "one works."
    assert two.motto() == {"name": "two"}
    assert Agent.motto.prompt(one) == "one works."


def test_a_missing_variable_is_an_error_that_names_prompt_and_variable():
    @prompt()
    def broken():
        """{{ here }} {{ nowhere }}"""
        return {"here": 1}

    with pytest.raises(PromptError, match=r"broken.*nowhere"):
        broken.prompt()


def test_a_missing_attribute_is_an_error_too():
    @prompt()
    def broken():
        """{{ value.missing }}"""
        return {"value": {}}

    with pytest.raises(PromptError, match="missing"):
        broken.prompt()


def test_a_broken_template_is_told_with_its_line():
    @prompt()
    def broken():
        """First.
        {% if %}"""
        return {}

    with pytest.raises(PromptError, match=r"broken, line 2"):
        broken.prompt()


@pytest.mark.parametrize("value", ["text", None, ["a"]])
def test_a_function_that_returns_no_mapping_is_refused(value):
    @prompt()
    def wrong():
        """x"""
        return value

    with pytest.raises(PromptError, match="not its variables"):
        wrong.prompt()


def test_a_prompt_without_template_is_refused_when_it_is_rendered():
    @prompt()
    def bare():
        return {}

    with pytest.raises(PromptError, match="no template"):
        bare.prompt()


def test_a_file_template_is_read_from_the_functions_package(tmp_path, monkeypatch):
    package = tmp_path / "some_package"
    (package / "prompts").mkdir(parents=True)
    (package / "prompts" / "hello.md.j2").write_text("Hällo {{ name }}\n", encoding="utf-8")
    (package / "__init__.py").write_text(
        "from croze.context.prompt import prompt\n"
        "@prompt('hello.md.j2')\ndef hello(name): return {'name': name}\n"
        "@prompt('missing.md.j2')\ndef lost(): return {}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import some_package

    assert some_package.hello.prompt("you") == "Hällo you"
    with pytest.raises(PromptError, match=r"missing\.md\.j2"):
        some_package.lost.prompt()


@given(st.text())
def test_values_are_never_taken_for_templates(text):
    assert letter.prompt(text) == f"Dear reader,\n{text}"


def test_defining_prompts_loads_no_template_engine():
    code = (
        "import sys, croze.context.head\n"
        "from croze.context.prompt import prompt\n"
        "prompt()(lambda: {})\n"
        "print([m for m in ('jinja2', 'yaml', 'importlib.resources') if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2] / "src",
    )
    assert out.stdout.strip() == "[]"
