"""Servers' tools before the rules: never taken for something harmless, never beyond an agent's list."""

from pathlib import Path
from typing import Any

import pytest

from croze.app.agents import load_agents
from croze.app.config import load
from croze.mcp.failure import McpError
from croze.mcp.servers import ToolName
from croze.tools.approve import Approver
from croze.tools.mcp import ACCESS, McpCall, McpTools
from croze.tools.registry import builtin
from croze.types.errors import UsageError
from croze.types.parts import ToolCall
from croze.types.tool import Access
from tests.mcp.conftest import Workshop

_NET = Access(read=True, exec=True, net=True)


def decide(approver: Approver, workshop: Workshop, **arguments: Any) -> Any:
    servers = workshop.servers(workshop.odd_spec())
    call = ToolCall("123456789", "mcp__odd__echo", arguments)
    bound = McpCall(servers, ToolName("odd", "echo"), arguments)
    return approver.decide(call.name, ACCESS, call, bound)


async def test_a_call_is_asked_about_whatever_the_server_says_of_it(workshop: Workshop) -> None:
    decision = decide(Approver(mode="auto-edit"), workshop, text="x")
    assert (decision.verdict, decision.rule) == ("ask", "mcp__odd__echo")


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "ls"},
        {"url": "https://example.org"},
        {"path": "a.txt"},
        {"requires_approval": False},
    ],
)
async def test_arguments_of_other_tools_make_it_nothing_else(
    workshop: Workshop, arguments: dict[str, Any]
) -> None:
    rules = ("execute_command(ls:*)", "web_crawl(domain:example.org)", "read_file(a.txt)")
    assert decide(Approver(allow=rules), workshop, **arguments).verdict == "ask"


async def test_plan_mode_calls_nothing(workshop: Workshop) -> None:
    assert decide(Approver(mode="plan", allow=("mcp__odd",)), workshop).verdict == "deny"


async def test_the_mode_full_in_a_sandbox_calls_only_what_a_rule_allows(workshop: Workshop) -> None:
    confined = Approver(mode="full", sandbox=lambda: "workspace")
    assert decide(confined, workshop).verdict == "deny"
    assert "outside of the sandbox" in decide(confined, workshop).reason
    assert decide(confined.with_rule("mcp__odd__*"), workshop).verdict == "allow"
    assert decide(Approver(mode="full", sandbox=lambda: "off"), workshop).verdict == "allow"


async def test_deny_beats_allow_for_a_whole_server(workshop: Workshop) -> None:
    approver = Approver(allow=("mcp__odd__echo",), deny=("mcp__odd",))
    assert decide(approver, workshop).verdict == "deny"
    assert decide(Approver(deny=("mcp__od",), allow=("mcp__odd",)), workshop).verdict == "allow"


@pytest.mark.parametrize("tool", ["read_mcp_resource", "get_mcp_prompt"])
async def test_resources_and_prompts_start_a_server_under_the_rules_of_its_tools(
    tool: str,
) -> None:
    kind = builtin().get(tool)
    assert kind is not None

    def verdict(approver: Approver, server: str = "odd") -> Any:
        args = {"server_name": server}
        return approver.decide(tool, _NET, ToolCall("123456789", tool, args), kind.bind(args))

    confined = Approver(mode="full", sandbox=lambda: "workspace")
    assert verdict(confined).verdict == "deny"
    assert "outside of the sandbox" in verdict(confined).reason
    asked = verdict(Approver())
    assert (asked.verdict, asked.rule) == ("ask", f"mcp__odd__{tool}")
    for rule in ("mcp__odd", f"mcp__odd__{tool}", tool):
        assert verdict(confined.with_rule(rule)).verdict == "allow"
    assert verdict(Approver(allow=(asked.rule,)), "even").verdict == "ask"
    assert verdict(Approver(deny=("mcp__odd",), allow=(tool,))).verdict == "deny"
    assert verdict(Approver(), "o) x(dd").rule == ""


async def test_what_an_agent_may_not_use_of_a_server_is_not_there(workshop: Workshop) -> None:
    registry = builtin()
    registry.outside = McpTools(
        workshop.servers(workshop.odd_spec(), workshop.odd_spec(name="even"))
    )
    for names in (None, ["use_mcp_tool"], ["mcp__odd", "mcp__even"]):
        less = registry.filter(names, ["mcp__odd__echo", "mcp__even"])
        assert less.get("mcp__odd__echo") is None
        assert less.get("odd:echo") is None
        assert less.get("mcp__odd__slow") is not None
        assert less.get("mcp__even__echo") is None
        assert less.outside is not None
        assert (less.outside.forbids("odd"), less.outside.forbids("even")) == (False, True)
        with pytest.raises(McpError):
            await less.outside.described("even")
        again = less.filter(["mcp__odd"])  # a sub-agent's
        assert again.get("mcp__odd__echo") is None


async def test_an_agents_list_reaches_no_further_than_it_says(workshop: Workshop) -> None:
    registry = builtin()
    registry.outside = McpTools(
        workshop.servers(workshop.odd_spec(), workshop.odd_spec(name="even"))
    )
    assert registry.filter(["read_file"]).get("mcp__odd__echo") is None
    assert registry.filter(["use_mcp_tool"]).get("mcp__even__echo") is not None
    one = registry.filter(["read_file", "mcp__odd__echo"])
    assert one.get("use_mcp_tool") is not None
    assert one.get("mcp__odd__echo") is not None
    assert one.get("mcp__odd__slow") is None
    assert one.get("mcp__even__echo") is None
    whole = registry.filter(["mcp__odd"])
    assert whole.get("odd:slow") is not None
    assert whole.get("even:slow") is None
    with pytest.raises(UsageError):
        one.filter(["mcp__even__echo"])
    with pytest.raises(UsageError):
        registry.filter(["mcp__gone__echo"])


async def test_a_description_is_given_only_of_what_the_agent_may_use(workshop: Workshop) -> None:
    narrowed = McpTools(workshop.servers(workshop.odd_spec())).narrowed(["mcp__odd__echo"])
    text = await narrowed.described("odd")
    assert "- echo: Does echo." in text
    assert "slow" not in text


def test_what_an_agents_file_forbids_of_a_server_is_in_its_spec_and_all_else_stays(
    workshop: Workshop, tmp_path: Path
) -> None:
    front = "---\nname: one\ndescription: d\ndisallowedTools: Bash, mcp__odd__echo\n---\nOne.\n"
    file = tmp_path / ".config/croze/agents/one.md"
    file.parent.mkdir(parents=True)
    file.write_text(front)
    env = {"HOME": str(tmp_path)}
    registry = builtin()
    registry.outside = McpTools(workshop.servers(workshop.odd_spec()))
    spec = load_agents(load(tmp_path, env=env), env, registry).roster.agent("one")
    assert spec is not None
    assert spec.without == ("mcp__odd__echo",)
    assert spec.tools is not None
    assert "execute_command" not in spec.tools
    less = registry.filter(spec.tools, spec.without)
    assert less.get("mcp__odd__echo") is None
    assert less.get("mcp__odd__slow") is not None
