"""The skills that there are, told by name and description; each is read when it is needed."""

from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol

from croze.text.tokens import estimate
from croze.types.event import FactAdded, ModelCalled

if TYPE_CHECKING:
    from croze.context.gather import GatherState
    from croze.knowledge.skills import Skill

SKILLS = "skills"
MOST_CHARACTERS = 12_000
"""Of all descriptions together, and at most a tenth of the budget (a character is about a third of a
token). Where they take more each is cut to `SHORT`; behind that are only names."""
SHORT = 200
_SHARE = 10
_ABOUT = """\
Skills: instructions for particular work, each with files of its own. Before you begin work that one of them \
is for, read it with load_skill."""
_CHANGED = "The skills have changed. They now are, in place of what was told before:"
_GONE = "There are no skills any more."
_REPLY = "I will load a skill before I begin work that it is for."


class SkillsSource(Protocol):
    """Where the skills of a session come from."""

    def look(self) -> "Sequence[Skill]":
        """All folders that would be skills, the higher first."""
        ...


async def gather_skills(state: "GatherState") -> Sequence[FactAdded]:
    """The skills at the opening, and again where they have changed."""
    if state.skills is None:
        return ()
    told = state.seen.get(SKILLS)
    skills = [skill for skill in state.skills.look() if skill.found.acts]
    text = "\n".join(lines(skills, state.budget))
    digest = sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
    if (told is None and not text) or (told is not None and told.data.get("digest") == digest):
        return ()
    begun = told is not None or any(isinstance(e.body, ModelCalled) for e in state.events)
    about = _ABOUT if told is None else f"{_CHANGED if skills else _GONE}"
    shown = "\n".join(filter(None, ("<skills>", about, text, "</skills>")))
    reply = "" if begun else _REPLY
    fact = FactAdded(
        key=SKILLS,
        message_id=state.source.uuid(),
        text=shown,
        layer="documentation",
        reason="the skills that there are" if told is None else "the skills have changed",
        origin="skills",
        reply=reply,
        tokens=estimate(shown) + estimate(reply),
        data={"digest": digest, "skills": [skill.name for skill in skills]},
    )
    return (fact,)


def lines(skills: "Sequence[Skill]", budget: int) -> list[str]:
    """A line a skill, by name; what there is no room for by its name alone. `budget` is what a request may
    hold, in tokens."""
    room = min(MOST_CHARACTERS, budget * 3 // _SHARE)
    skills = sorted(skills, key=lambda skill: skill.name)
    full = [skill.card.line for skill in skills]
    if sum(map(len, full)) <= room:
        return full
    shown, names = [], []
    for skill, line in zip(skills, full, strict=True):
        line = line if len(line) <= SHORT else f"{line[: SHORT - 1]}…"
        if len(line) <= room:
            room -= len(line)
            shown.append(line)
        else:
            names.append(skill.name)
    if names:
        shown.append(f"… and {len(names)} more: {', '.join(names)}"[:MOST_CHARACTERS])
    return shown
