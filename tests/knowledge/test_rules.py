"""Rule files on disk: which count, when each holds, and what gives way to what."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.knowledge.find import Finder, Found, Loaded, Places
from croze.knowledge.rules import Rule, RuleFiles, read_rule

Put = Callable[[str, str], Path]


class Desk:
    def __init__(self, root: Path) -> None:
        self.project, self.home = root / "demo", root / "home"
        self.config = self.home / ".config/croze"
        self.project.mkdir()
        self.home.mkdir()
        self.trusted: set[str] | None = None
        self.reads = 0
        self.files = self.again()

    def again(self) -> RuleFiles:
        return RuleFiles(Finder(Places(self.project, self.home, self.config), self._trusts))

    def _trusts(self, path: Path, data: bytes) -> bool:
        self.reads += 1
        return self.trusted is None or hashlib.sha256(data).hexdigest() in self.trusted

    def put(self, path: str, text: str | bytes) -> Path:
        file = self.home / path[2:] if path.startswith("~/") else self.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    def read(self, *folders: str) -> list[Rule]:
        return self.files.read(folders)

    def one(self, *folders: str) -> Rule:
        (rule,) = self.read(*folders)
        return rule

    def states(self, *folders: str) -> list[tuple[str, str]]:
        return [(rule.shown, rule.found.state) for rule in self.read(*folders)]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def matter(**fields: str) -> str:
    lines = "".join(f"{name}: {value}\n" for name, value in fields.items())
    return f"---\n{lines}---\nBody.\n"


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("Body.", "always"),
        (matter(alwaysApply="true", globs="*.py"), "always"),
        (matter(globs="*.py"), "match"),
        (matter(globs="['*.py', 'a/**']", alwaysApply="false"), "match"),
        (matter(description="d"), "ask"),
        (matter(description="d", globs=""), "ask"),
        ("---\n---\nBody.", "ask"),
    ],
)
def test_front_matter_says_when_a_rule_holds(desk: Desk, text: str, when: str) -> None:
    desk.put(".croze/rules/a.md", text)
    rule = desk.one()
    assert (rule.when, rule.text, rule.found.state) == (when, "Body.", "loaded")


def test_an_index_holds_always_and_the_rest_of_its_folder_is_on_demand(desk: Desk) -> None:
    desk.put(".croze/rules/index.md", matter(description="all"))
    desk.put(".croze/rules/plain.md", "# Releases\n\nBody.")
    desk.put(".croze/rules/py.md", matter(globs="*.py"))
    found = {rule.found.name: (rule.when, rule.description) for rule in desk.read()}
    assert found == {
        "index": ("always", "all"),
        "plain": ("ask", "Releases"),
        "py": ("match", "Body."),
    }


def test_of_the_projects_folders_the_first_with_a_rule_counts(desk: Desk) -> None:
    (desk.project / ".croze/rules").mkdir(parents=True)
    desk.put(".croze/rules/no.txt", "not Markdown")
    desk.put(".auto-coder/.autocoderrules/b.md", "B")
    desk.put(".auto-coder/autocoderrules/c.md", "C")
    assert desk.states() == [
        (".auto-coder/.autocoderrules/b.md", "loaded"),
        (".auto-coder/autocoderrules/c.md", "shadowed"),
    ]
    desk.put(".autocoderrules/a.md", "A")
    assert desk.states()[0] == (".autocoderrules/a.md", "loaded")
    assert [state for _path, state in desk.states()] == ["loaded", "shadowed", "shadowed"]


def test_the_users_rules_and_those_for_the_repository_add(desk: Desk) -> None:
    desk.put(".croze/rules/a.md", "A")
    desk.put("~/.config/croze/rules/b.md", "B")
    desk.put("~/.config/croze/rules/repos/demo/c.md", "C")
    desk.put("~/.auto-coder/autocoderrules/d.md", "D")
    desk.put("~/.auto-coder/autocoderrules/repos/demo/e.md", "E")
    desk.put("~/.auto-coder/autocoderrules/repos/other/f.md", "F")
    assert {path for path, state in desk.states() if state == "loaded"} == {
        ".croze/rules/a.md",
        "~/.config/croze/rules/b.md",
        "~/.config/croze/rules/repos/demo/c.md",
        "~/.auto-coder/autocoderrules/d.md",
        "~/.auto-coder/autocoderrules/repos/demo/e.md",
    }


def test_the_higher_wins_by_name_but_an_index_never_gives_way(desk: Desk) -> None:
    for name in ("style", "index"):
        desk.put(f".croze/rules/{name}.md", f"The project's {name}")
        desk.put(f"~/.config/croze/rules/{name}.md", f"The user's {name}")
    states = dict(desk.states())
    assert states["~/.config/croze/rules/style.md"] == "shadowed"
    assert states["~/.config/croze/rules/index.md"] == "loaded"


def test_a_rule_of_cursor_gives_way_to_the_projects_own_but_not_to_the_users(desk: Desk) -> None:
    desk.put(".croze/rules/a.md", "Own a.")
    desk.put(".cursor/rules/a.mdc", "Cursor's a.")
    desk.put(".cursor/rules/b.mdc", "Cursor's b.")
    desk.put("~/.config/croze/rules/b.md", "The user's b.")
    assert desk.states() == [
        (".croze/rules/a.md", "loaded"),
        (".cursor/rules/a.mdc", "shadowed"),
        (".cursor/rules/b.mdc", "loaded"),
        ("~/.config/croze/rules/b.md", "shadowed"),
    ]


def test_a_rule_that_nobody_trusts_is_material_and_takes_nobodys_name(desk: Desk) -> None:
    desk.trusted = set()
    desk.put(".croze/rules/style.md", "The project's")
    desk.put("~/.config/croze/rules/style.md", "The user's")
    project, user = desk.read()
    assert (project.found.state, project.usable, project.text) == (
        "untrusted",
        True,
        "The project's",
    )
    assert (user.found.state, user.usable) == ("loaded", True)


def test_a_users_rule_is_never_on_demand_because_read_file_does_not_reach_it(desk: Desk) -> None:
    desk.put("~/.config/croze/rules/a.md", matter(description="d"))
    assert desk.one().when == "always"


def test_broken_front_matter_is_told_and_the_rule_holds_whole(desk: Desk) -> None:
    for broken in (
        "---\nglobs: [\n---\nBody.\n",
        "---\nglobs: *.py\nBody.\n",
        matter(alwaysApply="x"),
    ):
        desk.put(".croze/rules/a.md", broken)
        rule = desk.one()
        assert (rule.when, rule.found.state) == ("always", "loaded")
        assert rule.text == broken.strip("\n")
        assert "; it is told whole" in rule.found.reason


def test_patterns_that_are_none_are_told(desk: Desk) -> None:
    desk.put(".croze/rules/a.md", matter(globs="'[,../x'"))
    rule = desk.one()
    assert rule.when == "ask"
    assert rule.found.reason.startswith("no file can match ")


def test_what_can_not_be_read_is_told_and_the_others_hold(desk: Desk) -> None:
    desk.put(".croze/rules/binary.md", b"\0\1\2")
    desk.put(".croze/rules/bom.md", b"\xef\xbb\xbf---\r\nglobs: '*.py'\r\n---\r\nBody.\r\n")
    desk.put(".croze/rules/empty.md", matter(description="d").replace("Body.\n", " \n"))
    desk.put(".croze/rules/huge.md", "x" * 300_000)
    desk.put(".croze/rules/latin.md", "Café".encode("latin-1"))
    os.symlink("loop.md", desk.project / ".croze/rules/loop.md")
    os.symlink("/etc/hostname", desk.project / ".croze/rules/out.md")
    os.mkfifo(desk.project / ".croze/rules/pipe.md")
    (desk.project / ".croze/rules/folder.md").mkdir()
    rules = {rule.found.name: rule for rule in desk.read()}
    states = {name: rule.found.state for name, rule in rules.items()}
    assert {name for name, state in states.items() if state == "loaded"} == {"bom", "latin"}
    assert set(states.values()) == {"loaded", "broken"}
    assert all(rule.found.reason for rule in rules.values() if rule.found.state == "broken")
    assert (rules["bom"].when, rules["bom"].text) == ("match", "Body.")
    assert rules["latin"].text == "Café"


def test_a_folder_that_may_not_be_read_is_told(desk: Desk) -> None:
    desk.put(".croze/rules/a.md", "A")
    folder = desk.project / ".croze/rules"
    if os.geteuid() == 0:  # root reads everything: something else in the folder's place
        (folder / "a.md").unlink()
        folder.rmdir()
        folder.write_text("no folder")
    else:
        folder.chmod(0)
    assert desk.states() == [(".croze/rules", "broken")]
    if folder.is_dir():
        folder.chmod(0o700)


def test_one_real_file_holds_once(desk: Desk) -> None:
    desk.put("docs/agents.md", "The same.")
    for link in ("CLAUDE.md", ".github/copilot-instructions.md"):
        (desk.project / link).parent.mkdir(exist_ok=True)
        os.symlink(desk.project / "docs/agents.md", desk.project / link)
    desk.put(".cursor/rules/copy.mdc", "The same.")
    assert sorted(state for _path, state in desk.states()) == ["loaded", "shadowed", "shadowed"]


def test_what_only_repeats_the_law_is_not_told_again(desk: Desk) -> None:
    desk.put("AGENTS.md", "Law.")
    desk.put("CLAUDE.md", "Law.")
    rule = desk.one()
    assert (rule.found.state, rule.found.reason) == ("shadowed", "it says the same as AGENTS.md")


def test_the_files_of_other_agents_count(desk: Desk) -> None:
    desk.put("CLAUDE.md", "Claude.")
    desk.put(".github/copilot-instructions.md", "Copilot.")
    desk.put(".cursor/rules/ts.mdc", "---\nglobs: *.ts,*.tsx\nalwaysApply: false\n---\nCursor.\n")
    found = {rule.shown: (rule.when, rule.globs.patterns) for rule in desk.read()}
    assert found == {
        ".cursor/rules/ts.mdc": ("match", ("*.ts", "*.tsx")),
        "CLAUDE.md": ("always", ()),
        ".github/copilot-instructions.md": ("always", ()),
    }


def test_nested_files_hold_below_their_folder(desk: Desk) -> None:
    desk.put("src/AGENTS.md", "Source.")
    desk.put("src/api/CLAUDE.md", "Interface.")
    desk.put("node_modules/x/AGENTS.md", "Other work.")
    assert desk.read() == []
    assert desk.states("src", "src/api", "node_modules/x", "", "no/such") == [
        ("src/AGENTS.md", "loaded"),
        ("src/api/CLAUDE.md", "loaded"),
    ]
    assert [rule.folder for rule in desk.read()] == ["src", "src/api"], "what was found stays known"


def test_two_folders_with_the_same_words_both_count_but_one_above_is_enough(desk: Desk) -> None:
    for folder in ("a", "b", "a/deep"):
        desk.put(f"{folder}/AGENTS.md", "Tests are in test/.")
    assert desk.states("a", "b", "a/deep") == [
        ("a/AGENTS.md", "loaded"),
        ("b/AGENTS.md", "loaded"),
        ("a/deep/AGENTS.md", "shadowed"),
    ]


def test_a_file_is_read_again_only_when_it_changes(desk: Desk) -> None:
    file = desk.put(".croze/rules/a.md", "One.")
    first = desk.one()
    for _ in range(5):
        assert desk.one() is first
    assert desk.reads == 1
    file.write_text("Two, longer.")
    assert desk.one().text == "Two, longer."
    assert desk.reads == 2
    file.unlink()
    assert desk.read() == []


def test_a_file_that_goes_between_the_look_and_the_reading_is_told(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = desk.put(".croze/rules/a.md", "One.")
    read = Finder.read

    def gone(self: Finder, found: Found, most: int = 256_000, *, acts: bool = True) -> Loaded:
        file.unlink(missing_ok=True)
        return read(self, found, most, acts=acts)

    monkeypatch.setattr(Finder, "read", gone)
    rule = desk.one()
    assert (rule.found.state, rule.usable) == ("broken", False)
    assert desk.read() == []


@given(st.text(max_size=300))
def test_any_text_is_a_rule_that_can_be_told_or_is_empty(text: str) -> None:
    found = Found(kind="rules", name="a", path="a.md", source="project")
    rule = read_rule(Loaded(found, text), in_index=False)
    assert rule.when in ("always", "match", "ask")
    assert rule.text.strip("\n") in text
