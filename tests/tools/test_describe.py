"""Describing tools outside the core."""

from collections.abc import Sequence
from typing import Any

import pytest

from croze.dialect.xml import XmlDialect
from croze.tools.builtin.describe import CallTool, DescribeTools
from croze.tools.cases import CASES
from croze.tools.registry import builtin


@pytest.fixture
def context(fake_context: Any) -> Any:
    """A context that describes as a session does."""

    def describe(names: Sequence[str]) -> tuple[str, list[str]]:
        kinds = {name: builtin().get(name) for name in names}
        docs = [kind.doc for kind in kinds.values() if kind is not None]
        return XmlDialect().describe(docs), [name for name, kind in kinds.items() if kind is None]

    fake_context.describe = describe
    return fake_context


async def test_named_tools_are_described_in_full_and_unknown_ones_reported(context: Any) -> None:
    result = await DescribeTools(names=("todo_read", "nothing", "Bash")).run(context)
    assert result.ok
    assert result.message == "There is no tool named nothing."
    assert "## todo_read" in result.text
    assert "## execute_command" in result.text
    assert result.data == {"described": ["todo_read", "Bash"], "unknown": ["nothing"]}


async def test_guides_are_given_by_name_beside_tools(context: Any) -> None:
    result = await DescribeTools(names=("case:explore", "todo_read")).run(context)
    assert result.ok
    assert result.data == {"described": ["case:explore", "todo_read"], "unknown": []}
    assert "## case:explore\nTo find the code" in result.text
    assert "## todo_read" in result.text
    assert "You don't have" not in result.text


async def test_a_guide_names_the_tools_that_the_agent_lacks(context: Any) -> None:
    context.describe = lambda names: ("", [name for name in names if name == "repo_map"])
    result = await DescribeTools(names=("case:explore",)).run(context)
    assert "You don't have repo_map: leave those steps out" in result.text


def test_every_guide_is_named_and_speaks_of_tools_that_exist() -> None:
    doc = DescribeTools.__doc__ or ""
    for name, case in CASES.items():
        assert name in doc
        assert all(builtin().get(tool) is not None for tool in case.tools)
        assert all(tool in case.text for tool in case.tools)


async def test_only_unknown_names_are_an_error(context: Any) -> None:
    result = await DescribeTools(names=("nothing",)).run(context)
    assert (result.ok, result.code) == (False, "unknown_tool")


@pytest.mark.parametrize(
    "names", ["todo_read", "todo_read, Read", "- todo_read\n- Read", '["todo_read"]']
)
def test_names_may_be_text(names: str) -> None:
    kind = builtin().get("describe_tools")
    assert kind is not None
    bound = kind.bind({"names": names})
    assert isinstance(bound, DescribeTools)
    assert bound.names[0] == "todo_read"


async def test_call_tool_itself_runs_nothing(context: Any) -> None:
    result = await CallTool(name="execute_command", arguments={"command": "true"}).run(context)
    assert (result.ok, result.code) == (False, "malformed")
