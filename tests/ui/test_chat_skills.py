"""Skills in the chat: listing them, using one by its name, and what one asks for."""

from pathlib import Path

import pytest

from croze.types.event import UserSaid
from tests.ui.test_chat import TALKS, Desk, answers
from tests.ui.test_chat import desk as desk

SKILL = "---\nname: greet\ndescription: Greets people.\nallowed-tools: Bash(./t.sh:*)\n---\nBody.\n"
LOADS = """\
- calls: [{name: call_tool, args: {name: load_skill, arguments: {name: greet}}}]
- calls: [{name: execute_command, args: {command: ./t.sh}}]
- text: Done.
"""


def skill(desk: Desk, *, user: bool = True) -> Path:
    base = desk.root / "home/.claude" if user else desk.project / ".croze"
    file = base / "skills/greet/SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text(SKILL)
    tool = desk.project / "t.sh"
    tool.write_text("#!/bin/sh\necho ran\n")
    tool.chmod(0o755)
    return file


async def test_skills_are_listed_and_one_is_used_by_its_name(desk: Desk) -> None:
    skill(desk)
    chat = await desk.chat(TALKS, "/skills", "/greet Ada and Bob", "/nope")
    (row,) = [line for line in desk.lines if "/greet" in line and "Greets people." in line]
    assert "loaded" in row
    said = [event.body for event in chat.session.events if isinstance(event.body, UserSaid)]
    assert [part.text for part in said[0].parts if hasattr(part, "text")] == [
        "Use the skill greet. Ada and Bob"
    ]
    assert "There is no /nope; /help lists what there is." in desk.lines


async def test_a_command_of_crozes_own_goes_before_a_skill_of_its_name(desk: Desk) -> None:
    file = skill(desk)
    file.write_text(SKILL.replace("greet", "cost"))
    chat = await desk.chat(TALKS, "/cost")
    assert not [event for event in chat.session.events if isinstance(event.body, UserSaid)]


async def test_a_skill_that_nobody_trusts_is_shown_as_such_and_not_used(desk: Desk) -> None:
    skill(desk, user=False)
    await desk.chat(TALKS, "/skills", "/greet")
    assert any("/greet" in line and "untrusted" in line for line in desk.lines)
    assert all("Greets people." not in line for line in desk.lines)
    assert "There is no /greet; /help lists what there is." in desk.lines


async def test_no_skills_are_told_in_a_line(desk: Desk) -> None:
    await desk.chat(TALKS, "/skills")
    assert "There are no skills: folders with a SKILL.md in .croze/skills." in desk.lines


@pytest.mark.parametrize("answer", ["1", "yes"])
async def test_what_a_skill_asks_for_is_put_to_the_user_once(desk: Desk, answer: str) -> None:
    skill(desk)
    chat = await desk.chat(LOADS, "/greet", answer, sandbox="off")
    assert any("The skill greet would like to use these" in line for line in desk.lines)
    assert answers(chat) == [("yes", "")]
    assert "ran" in desk.text


async def test_after_a_no_its_commands_are_asked_about(desk: Desk) -> None:
    skill(desk)
    chat = await desk.chat(LOADS, "/greet", "2", "n", sandbox="off")
    assert answers(chat) == [("no", ""), ("no", "")]


async def test_rules_and_agents_are_listed_with_what_became_of_their_files(desk: Desk) -> None:
    for path, text in (
        ("AGENTS.md", "Use tabs."),
        (".croze/rules/a.md", "Use types."),
        (".croze/agents/one.md", "no front matter"),
    ):
        (desk.project / path).parent.mkdir(parents=True, exist_ok=True)
        (desk.project / path).write_text(text)
    await desk.chat(TALKS, "/rules")
    assert any("AGENTS.md" in line and "untrusted" in line for line in desk.lines)
    assert any(".croze/rules/a.md" in line for line in desk.lines)
    await desk.chat(TALKS, "/agents")
    assert any(line.strip().startswith("explore ") for line in desk.lines)
    assert any(".croze/agents/one.md" in line and "not usable" in line for line in desk.lines)
