"""Rules are never cut: recovery takes everything else first, and a batch only what a newer wording replaces."""

from croze.context.check import check_context
from croze.context.project import project
from croze.context.recover import recover
from croze.types.context import Budget
from croze.types.event import Compacted, Event, FactAdded
from croze.types.parts import Text
from tests.context.long_sessions import content
from tests.context.test_recover import BUDGET, after, full, recovered, texts


def rule(key: str, number: int, tokens: int) -> FactAdded:
    name = f"{key}{number}"
    return FactAdded(key=key, message_id=name, text=content(name, tokens), tokens=tokens)


def test_recovery_to_the_bone_leaves_the_rules() -> None:
    story = full(reads=3, tokens=2_500)
    story.add(rule("rules", 1, 1_500))
    story.add(rule("rules:.croze/rules/a.md", 1, 1_500))
    story.add(FactAdded(key="tree", message_id="tree", text=content("tree", 6_000), tokens=6_000))
    story.reads("last.py", 9_000)
    event = recovered(story)
    told = texts(story, event)
    assert content("rules1", 1_500) in told
    assert content("rules:.croze/rules/a.md1", 1_500) in told
    assert "tree" in event.hidden


def test_a_rule_as_it_was_goes_where_its_newer_wording_stands() -> None:
    story = full(reads=9)
    for key in ("rules:a.md", "rules:b.md"):
        story.add(rule(key, 1, 700))
    story.add(rule("rules:a.md", 2, 700))
    decision = recover(story.state(policy="none", budget=BUDGET))
    assert decision is not None
    ledger = after(story, decision.event)
    assert ledger.by_id["rules:a.md1"].standing == "hidden"
    assert ledger.by_id["rules:a.md2"].standing == "full"
    assert ledger.by_id["rules:b.md1"].standing == "full"


def test_what_is_left_is_a_conversation_that_every_wire_takes() -> None:
    story = full(reads=9)
    story.add(rule("rules:a.md", 1, 700))
    story.add(rule("rules:a.md", 2, 700))
    event: Compacted = recovered(story)
    last = story.events[-1]
    context = project([*story.events, Event("s", last.seq + 1, last.at, event)], "head", (), ())
    wide = Budget(window=10**9, reserve=0)
    assert [check for check in check_context(context, wide) if check.level == "error"] == []
    assert any(isinstance(part, Text) for message in context.messages for part in message.parts)
