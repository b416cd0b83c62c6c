"""Configured servers: the well-known file, what is wrong in it, and variables."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.mcp.config import ServerSpec, filled_in, parse
from croze.types.errors import ConfigError

PATH = Path("mcp.json")


def read(servers: dict[str, Any]) -> tuple[list[ServerSpec], list[str]]:
    found, problems = parse(json.dumps({"mcpServers": servers}).encode(), "user", PATH)
    return found, [f"{problem.name}: {problem.reason}" for problem in problems]


def test_programs_and_addresses_are_read_as_other_agents_write_them() -> None:
    found, problems = read(
        {
            "fs": {
                "type": "stdio",
                "command": "npx",
                "args": ["-y", "x"],
                "env": {"A": "1"},
                "timeout": 5000,
            },
            "docs": {"type": "http", "url": "https://example.org/mcp", "headers": {"X": "y"}},
            "gem": {"httpUrl": "http://127.0.0.1:1/mcp", "trust": True, "disabled": True},
        }
    )
    assert problems == []
    assert [(each.name, each.transport, each.timeout, each.disabled) for each in found] == [
        ("fs", "stdio", 5.0, False),
        ("docs", "http", 60.0, False),
        ("gem", "http", 60.0, True),
    ]


@pytest.mark.parametrize(
    ("name", "entry", "reason"),
    [
        ("a__b", {"command": "x"}, "single _"),
        ("a b", {"command": "x"}, "letters, digits"),
        ("a", {"command": "x", "url": "http://y"}, "either command or url"),
        ("a", {}, "either command or url"),
        ("a", {"command": "x", "args": "y"}, "list of texts"),
        ("a", {"command": "x", "env": {"A": 1}}, "object of texts"),
        ("a", {"url": "file:///etc/passwd"}, "http:// or https://"),
        ("a", {"url": "http://x", "headers": {"A": "b\nc: d"}}, "no line break"),
        ("a", {"type": "sse", "url": "http://x"}, "SSE"),
        ("a", {"command": "x", "timeout": True}, "number of seconds"),
        ("a", ["x"], "an object"),
    ],
)
def test_a_wrong_entry_costs_only_itself(name: str, entry: Any, reason: str) -> None:
    found, problems = read({name: entry, "good": {"command": "true"}})
    assert [each.name for each in found] == ["good"]
    assert len(problems) == 1
    assert reason in problems[0]


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_read_or_told(data: bytes) -> None:
    found, problems = parse(data, "project", PATH)
    assert not found or not problems


@given(
    st.dictionaries(
        st.text(max_size=8),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=8),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["command", "url", "args", "env", "type"]), inner, max_size=4
                )
            ),
            max_leaves=8,
        ),
        max_size=4,
    )
)
def test_any_json_is_read_or_told(servers: dict[str, Any]) -> None:
    found, problems = read(servers)
    assert len(found) + len(problems) == len(servers)


def spec(**fields: Any) -> ServerSpec:
    return ServerSpec(**{"name": "s", "path": "p", **fields})


def test_variables_come_from_the_environment_or_have_a_default() -> None:
    whole = filled_in(
        spec(command="${BIN:-node}", args=("${HOME}/x", "$HOME"), env={"T": "a${TOKEN}b"}),
        {"HOME": "/h", "TOKEN": "t"},
    )
    assert (whole.command, whole.args, whole.env) == ("node", ("/h/x", "$HOME"), {"T": "atb"})


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(ConfigError, match="NOWHERE"):
        filled_in(spec(command="x", env={"A": "${NOWHERE}"}), {})


def test_a_project_gets_secrets_only_where_they_are_not_shown() -> None:
    env = {"API_TOKEN": "t", "HOST": "h"}
    kept = filled_in(
        spec(source="project", url="http://${HOST}/", headers={"A": "${API_TOKEN}"}), env
    )
    assert (kept.url, kept.headers) == ("http://h/", {"A": "t"})
    with pytest.raises(ConfigError, match="outside of env and headers"):
        filled_in(spec(source="project", url="http://evil/?${API_TOKEN}"), env)


def test_the_key_changes_with_what_is_started_and_with_nothing_else() -> None:
    base = spec(command="x", args=("a",))
    assert base.key == spec(command="x", args=("a",), timeout=5.0, path="elsewhere").key
    assert base.key != spec(command="x", args=("b",)).key
    assert base.key != spec(command="x", args=("a",), source="project").key
