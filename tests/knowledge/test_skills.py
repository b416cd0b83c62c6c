"""Skills on real folders: what is read of them, what is wrong with them, and what of them may be read."""

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.context.skills_facts import MOST_CHARACTERS, lines
from croze.knowledge.find import Finder, Found, Places
from croze.knowledge.skills import MOST_DESCRIPTION, MOST_FILES, Card, Skill, Skills, card_of

WHOLE = """\
---
name: pdf-forms
description: >-
  Fills PDF forms.
  Use it when a form is to be filled.
license: Apache-2.0
compatibility: Needs qpdf
metadata:
  author: somebody
  version: "1.0"
allowed-tools: Bash(qpdf:*) Bash(npm run test:*) Read
---

# Forms

Look into references/fields.md first.
"""


class Shelf:
    """A project and a user with skills on disk."""

    def __init__(self, root: Path) -> None:
        self.project, self.home = root / "project", root / "home"
        self.project.mkdir()
        self.cache = root / "cache"
        self.trusted = True

    def put(self, path: str, text: str = "", *, name: str = "") -> Path:
        """A file below the project, or with `~/` below the home; a SKILL.md for a `name`."""
        file = self.home / path[2:] if path.startswith("~/") else self.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            text or f"---\nname: {name}\ndescription: Does {path}.\n---\nBody of {path}.\n"
        )
        return file

    def skills(self) -> Skills:
        places = Places(self.project, self.home, self.home / ".config/croze")
        finder = Finder(places, lambda _path, _data: self.trusted)
        return Skills(finder, self.cache, lambda _path: "hash" if self.trusted else "")

    def one(self, name: str) -> tuple[Skills, Skill]:
        skills = self.skills()
        skill = skills.get(name)
        assert skill is not None
        return skills, skill


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def test_all_that_a_skill_says_is_read(shelf: Shelf) -> None:
    shelf.put(".croze/skills/pdf-forms/SKILL.md", WHOLE)
    skills, skill = shelf.one("pdf-forms")
    assert (skill.found.state, skill.found.reason) == ("loaded", "")
    assert skill.card == Card(
        name="pdf-forms",
        description="Fills PDF forms. Use it when a form is to be filled.",
        license="Apache-2.0",
        compatibility="Needs qpdf",
        allowed_tools=("Bash(qpdf:*)", "Bash(npm run test:*)", "Read"),
    )
    found, body = skills.body(skill)
    assert found.acts
    assert body == "# Forms\n\nLook into references/fields.md first."


def test_the_places_of_other_agents_count_and_the_higher_wins_by_name(shelf: Shelf) -> None:
    for folder in (
        ".croze/skills", ".agents/skills", ".claude/skills", "~/.config/croze/skills",
        "~/.agents/skills", "~/.claude/skills", "~/.claude/skills/repos/project",
    ):  # fmt: skip
        shelf.put(f"{folder}/same/SKILL.md", name="same")
    shelf.put("~/.claude/skills/mine/SKILL.md", name="mine")
    found = [(skill.name, skill.found.state) for skill in shelf.skills().look()]
    assert found.count(("same", "loaded")) == 1
    assert found.count(("same", "shadowed")) == 6
    assert ("mine", "loaded") in found
    assert shelf.one("same")[1].found.path == ".croze/skills/same/SKILL.md"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Just words.", "it has no front matter with a description"),
        ("", "it has no front matter with a description"),
        ("---\nname: folder\n---\n", "it has no description"),
        ("---\nname: folder\ndescription:\n---\n", "it has no description"),
        ("---\nname: folder\ndescription: [a]\n---\n", "description must be text"),
        ("---\nname: [folder\n---\n", "its front matter can't be read: line 3"),
        ("---\nname: folder\ndescription: d\n", "its front matter is not closed by ---"),
    ],
)
def test_a_broken_skill_is_told_and_not_used(shelf: Shelf, text: str, reason: str) -> None:
    shelf.put(".croze/skills/folder/SKILL.md", text or "\n")
    (skill,) = shelf.skills().look()
    assert skill.found.state == "broken"
    assert skill.found.reason.startswith(reason)


@pytest.mark.parametrize(
    ("front", "name", "doubt"),
    [
        ("name: folder\n", "folder", ""),
        ("name: other\n", "other", "its name is not its folder's, folder"),
        ("", "folder", "it has no name"),
        ("name: Big\n", "folder", "'Big' is no name for a skill"),
        ("name: two--hyphens\n", "folder", "'two--hyphens' is no name for a skill"),
        ("name: -a\n", "folder", "'-a' is no name for a skill"),
        ("name: under_score\n", "folder", "'under_score' is no name for a skill"),
        (f"name: {'x' * 65}\n", "folder", f"{'x' * 65!r} is no name for a skill"),
        ("name: folder\nhooks: x\n", "folder", "croze does not use hooks"),
        ("name: folder\nlicense: [a]\nmetadata: 7\ncompatibility: {}\n", "folder", ""),
    ],
)
def test_what_is_against_the_format_is_told_and_the_rest_holds(
    shelf: Shelf, front: str, name: str, doubt: str
) -> None:
    shelf.put(".croze/skills/folder/SKILL.md", f"---\n{front}description: d\n---\nBody.\n")
    (skill,) = shelf.skills().look()
    assert (skill.name, skill.found.state) == (name, "loaded")
    assert skill.found.reason.startswith(doubt)
    assert bool(skill.found.reason) == bool(doubt)


def test_too_long_a_description_is_cut_and_told() -> None:
    card = card_of(f"---\nname: a\ndescription: {'x' * 2_000}\n---\n", "a")
    assert len(card.description) == MOST_DESCRIPTION
    assert card.doubt == "its description has more than 1,024 characters"


@pytest.mark.parametrize(
    ("value", "tools"),
    [
        ("Bash(git:*) Read", ("Bash(git:*)", "Read")),
        ("Bash(git add:*), Read,Write", ("Bash(git add:*)", "Read", "Write")),
        ("\n- Bash(a)\n- Read", ("Bash(a)", "Read")),
        ("", ()),
        ("{a: b}", ()),
    ],
)
def test_allowed_tools_are_text_or_a_list(value: str, tools: tuple[str, ...]) -> None:
    text = f"---\nname: a\ndescription: d\nallowed-tools: {value}\n---\n"
    assert card_of(text, "a").allowed_tools == tools


@given(st.text(max_size=300), st.text(max_size=20))
def test_whatever_the_front_matter_holds_there_is_a_card(matter: str, folder: str) -> None:
    card = card_of(f"---\n{matter}\n---\nbody", folder)
    assert card.broken or (card.name and card.name.isprintable() and card.description)


def test_an_untrusted_projects_skills_are_not_read(shelf: Shelf) -> None:
    shelf.trusted = False
    shelf.put(".croze/skills/evil/SKILL.md", name="another")
    shelf.put("~/.claude/skills/evil/SKILL.md", name="evil")
    first, second = shelf.skills().look()
    assert (first.name, first.found.state, first.found.sha256) == ("evil", "untrusted", "")
    assert (second.name, second.found.state) == ("evil", "loaded")
    assert shelf.one("evil")[1].found.source == "user"


def test_a_skill_whose_trust_is_gone_gives_no_body(shelf: Shelf) -> None:
    shelf.put(".croze/skills/a/SKILL.md", name="a")
    skills, skill = shelf.one("a")
    shelf.trusted = False
    found, body = skills.body(skill)
    assert (found.state, body) == ("untrusted", "")


def test_files_of_a_skill_are_listed_and_read_and_none_outside_of_it(shelf: Shelf) -> None:
    shelf.put("~/.claude/skills/a/SKILL.md", name="a")
    shelf.put("~/.claude/skills/a/references/more.md", "More.\r\n")
    shelf.put("~/.claude/skills/a/scripts/run.sh", "echo\n")
    shelf.put("~/.claude/skills/a/.git/config", "x")
    secret = shelf.put("~/.ssh/id_rsa", "secret")
    folder = shelf.home / ".claude/skills/a"
    (folder / "key").symlink_to(secret)
    (folder / "loop").symlink_to(".")
    skills, skill = shelf.one("a")
    assert skills.files(skill) == ["key", "references/more.md", "scripts/run.sh"]
    found, text = skills.file(skill, "references/more.md")
    assert (found.state, text) == ("loaded", "More.\n")
    for path in ("key", "../../../.ssh/id_rsa", str(secret), "references/../../b", "~/.ssh/id_rsa",
                 "scripts", "nothing.md", "", "a\0b"):  # fmt: skip
        found, text = skills.file(skill, path)
        assert (found.state, text) == ("broken", ""), path


def test_a_projects_file_outside_of_the_skill_is_not_its_file(shelf: Shelf) -> None:
    shelf.put(".croze/skills/a/SKILL.md", name="a")
    shelf.put("notes.md", "notes")
    skills, skill = shelf.one("a")
    found, text = skills.file(skill, "../../../notes.md")
    assert (found.state, found.reason, text) == ("broken", "it leads out of the skill's folder", "")


def test_links_loops_folders_and_huge_skills_are_told(shelf: Shelf) -> None:
    elsewhere = shelf.home / "elsewhere"
    elsewhere.mkdir(parents=True)
    (elsewhere / "SKILL.md").write_text("---\nname: out\ndescription: d\n---\n")
    folder = shelf.project / ".croze/skills"
    folder.mkdir(parents=True)
    (folder / "out").symlink_to(elsewhere)
    (folder / "loop").symlink_to("loop")
    (folder / "folder/SKILL.md").mkdir(parents=True)
    (folder / "empty").mkdir()
    shelf.put(".croze/skills/README.md", "no skill")
    shelf.put(
        ".croze/skills/huge/SKILL.md", "---\nname: huge\ndescription: d\n---\n" + "x" * 300_000
    )
    found = {skill.found.name: skill.found.state for skill in shelf.skills().look()}
    assert found == dict.fromkeys(("folder", "huge", "loop", "out"), "broken")


def test_the_users_linked_folder_is_one_skill_however_many_lead_to_it(shelf: Shelf) -> None:
    shelf.put("~/dotfiles/a/SKILL.md", name="a")
    shelf.put("~/dotfiles/a/more.md", "More.")
    for place in (".claude/skills", ".agents/skills"):
        (shelf.home / place).mkdir(parents=True)
        (shelf.home / place / "a").symlink_to(shelf.home / "dotfiles/a")
    assert [skill.found.state for skill in shelf.skills().look()] == ["loaded", "shadowed"]
    skills, skill = shelf.one("a")
    assert skill.folder == shelf.home / "dotfiles/a"
    assert skills.file(skill, "more.md")[1] == "More."


def test_what_is_known_of_a_users_skill_is_kept_until_it_changes(shelf: Shelf) -> None:
    file = shelf.put("~/.claude/skills/a/SKILL.md", name="a")
    first = shelf.one("a")[1]
    kept = shelf.cache / "skills.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    kept.write_text(kept.read_text().replace("Does ", "Did "))
    again = shelf.one("a")[1]
    assert again.card.description == first.card.description.replace("Does", "Did")
    os.utime(file, ns=(1, 1))
    file.write_text("---\nname: a\ndescription: Other.\n---\n")
    assert shelf.one("a")[1].card.description == "Other."
    kept.write_text("no json")
    assert shelf.one("a")[1].card.description == "Other."


def test_a_card_of_the_same_content_in_another_folder_is_another(shelf: Shelf) -> None:
    shelf.put("~/.claude/skills/a/SKILL.md", "---\nname: a\ndescription: d\n---\n")
    shelf.put("~/.claude/skills/b/SKILL.md", "---\nname: a\ndescription: d\n---\n")
    reasons = [skill.found.reason for skill in shelf.skills().look()]
    assert reasons == ["", f"{shelf.home}/.claude/skills/a/SKILL.md has the same name"]


def test_many_skills_are_told_within_bounds_and_none_is_left_out() -> None:
    skills = [
        Skill(
            found=Found(kind="skills", name=f"s{n:03}", path="p", source="user"),
            card=Card(name=f"s{n:03}", description="d" * 900),
            folder=Path("/"),
        )
        for n in range(150)
    ]
    told = "\n".join(lines(skills, 200_000))
    assert len(told) < 2 * MOST_CHARACTERS
    assert all(skill.name in told for skill in skills)
    assert lines(skills[:3], 200_000) == [skill.card.line for skill in skills[:3]]
    assert len("\n".join(lines(skills, 4_000))) < 3_000


def test_a_folder_of_very_many_files_is_told_in_part(shelf: Shelf) -> None:
    shelf.put("~/.claude/skills/a/SKILL.md", name="a")
    for number in range(MOST_FILES + 50):
        shelf.put(f"~/.claude/skills/a/f{number}", "x")
    skills, skill = shelf.one("a")
    assert len(skills.files(skill)) == MOST_FILES
