"""Imports of CLAUDE.md, and where instruction files lie in a tree."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from croze.knowledge.find import Finder, Found, Loaded, Places
from croze.knowledge.instructions import MOST_HOPS, MOST_IMPORTS, imports, instructed
from croze.knowledge.rules import RuleFiles
from croze.workspace.files import Files


def take_from(texts: dict[str, str]) -> object:
    def take(path: str) -> Loaded | None:
        if path not in texts:
            return None
        return Loaded(Found(kind="rules", name=path, path=path, source="project"), texts[path])

    return take


def imported(text: str, **texts: str) -> list[tuple[str, str]]:
    files = {name.replace("__", "/"): body for name, body in texts.items()}
    found = imports("CLAUDE.md", text, take_from(files))  # type: ignore[arg-type]  # its own return type
    return [(each.found.path, each.found.state) for each in found]


def test_a_path_after_an_at_sign_is_imported_and_so_are_the_imports_of_it() -> None:
    found = imported("See @docs/a.md, and @b.", docs__a="no", b="B")
    assert found == [("b", "loaded")]
    texts = {"docs/a.md": "@b.md and @../c.md", "docs/b.md": "B", "c.md": "@CLAUDE.md"}
    take = take_from(texts)
    loaded = imports("CLAUDE.md", "Read @docs/a.md first.", take)  # type: ignore[arg-type]  # as above
    assert [each.found.path for each in loaded] == ["docs/a.md", "docs/b.md", "c.md"]


def test_names_in_code_and_words_with_an_at_are_not_imported() -> None:
    text = "`@b` and\n```\n@b\n```\nmail a@b or ask @someone; ~~~\n    @c\n"
    assert imported(text, b="B") == []


def test_what_leads_out_of_the_project_is_told() -> None:
    found = imported("@~/notes.md @/etc/hosts @../x.md @../../x.md")
    assert [state for _path, state in found] == ["broken"] * 4


def test_circles_end_and_depth_and_number_are_bounded() -> None:
    assert imported("@a", a="@b", b="@a") == [("a", "loaded"), ("b", "loaded")]
    chain = {f"f{n}.md": f"@f{n + 1}.md" for n in range(20)}
    loaded = imports("CLAUDE.md", "@f0.md", take_from(chain))  # type: ignore[arg-type]  # as above
    assert [each.found.state for each in loaded] == ["loaded"] * MOST_HOPS + ["broken"]
    wide = {f"f{n}.md": "x" for n in range(500)}
    text = " ".join(f"@{name}" for name in wide)
    loaded = imports("CLAUDE.md", text, take_from(wide))  # type: ignore[arg-type]  # as above
    assert len(loaded) <= MOST_IMPORTS + 1
    assert loaded[-1].found.state == "broken"


@given(st.text("@a/.~ `\n\\", max_size=60))
def test_no_text_makes_imports_fail(text: str) -> None:
    imported(text, a="@a/a", a__a="x")


def test_a_claude_file_with_imports_holds_with_what_it_imports(tmp_path: Path) -> None:
    root = tmp_path / "p"
    (root / "src").mkdir(parents=True)
    (root / "AGENTS.md").write_text("Law.")
    (root / "CLAUDE.md").write_text("@AGENTS.md\n@style.md\n@src/gone.md\n")
    (root / "style.md").write_text("Style.")
    places = Places(root, tmp_path / "home", tmp_path / "config")
    rules = RuleFiles(Finder(places, lambda _path, _data: True)).read()
    assert [(rule.shown, rule.found.state) for rule in rules] == [
        ("CLAUDE.md", "loaded"),
        ("style.md", "loaded"),
    ]


def test_the_folders_with_instruction_files_are_found_but_for_ignored_ones(tmp_path: Path) -> None:
    for path in (
        "AGENTS.md",
        "a/AGENTS.md",
        "a/b/CLAUDE.md",
        "node_modules/x/AGENTS.md",
        "gone/AGENTS.md",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x")
    (tmp_path / ".gitignore").write_text("gone/\n")
    assert instructed(Files(tmp_path, kind="project")) == ["a", "a/b"]
