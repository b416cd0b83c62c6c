"""Rules of sub-agents: what the caller was told is theirs, and what they look at themselves is told to them."""

from croze.types.event import FactAdded, Notice
from tests.agent.conftest import Desk, bodies
from tests.agent.team_cast import Cast, opened, subagents
from tests.agent.test_rules_told import PYTHON, put


async def test_a_sub_agent_has_its_callers_rules_and_its_own_folders(any_desk: Desk) -> None:
    desk = any_desk
    put(desk, ".croze/rules/index.md", "RULE-OF-ALL")
    put(desk, ".croze/rules/python.md", PYTHON)
    put(desk, "src/AGENTS.md", "RULE-OF-SOURCE")
    put(desk, "web/AGENTS.md", "RULE-OF-WEB")
    (desk.project / "src/a.py").write_text("x = 1\n")
    (desk.project / "web/b.ts").write_text("x\n")
    say = desk.reply
    cast = Cast(
        desk,
        [
            say("", [("read_file", {"path": "src/a.py"})]),
            say("", [subagents("ask alpha")]),
            say("ok"),
        ],
        {"alpha": [say("", [("read_file", {"path": "web/b.ts"})]), say("a")]},
    )
    session, _ = await desk.run("go")
    first, second = (request.body for request in cast.asked["alpha"])
    for rule in (b"RULE-OF-ALL", b"RULE-OF-PYTHON", b"RULE-OF-SOURCE"):
        assert first.count(rule) == 1
    assert first.count(b"RULE-OF-WEB") == 0
    assert second.count(b"RULE-OF-WEB") == 1
    (known,) = opened(session)
    log = await desk.log(known.child)
    told = [fact.key for fact in bodies(log, FactAdded) if fact.key.startswith("rules")]
    assert told == [
        "rules",
        "rules:.croze/rules/python.md",
        "rules:src/AGENTS.md",
        "rules:web/AGENTS.md",
    ]
    assert not any("holds no longer" in fact.text for fact in bodies(log, FactAdded))
    assert not any(notice.code == "rule_file_problem" for notice in bodies(log, Notice))


async def test_an_agent_that_asks_for_no_rules_gets_none(desk: Desk) -> None:
    put(desk, ".croze/rules/index.md", "RULE-OF-ALL")
    agent = "---\nname: plain\ndescription: d\n---\nYou work without rules.\n"
    put(desk, ".croze/agents/plain.md", agent)
    say = desk.reply
    cast = Cast(
        desk,
        [say("", [subagents({"name": "plain", "task": "ask alpha"})]), say("ok")],
        {"alpha": [say("a")]},
    )
    await desk.run("go")
    assert b"RULE-OF-ALL" in cast.asked["main"][0].body
    assert b"RULE-OF-ALL" not in cast.asked["alpha"][0].body
