"""`croze knowledge --kind rules`: every rule and instruction file, with what became of it and when it holds."""

import pytest

from tests.knowledge.test_audit import Desk

PYTHON = "---\ndescription: Python\nglobs: '*.py'\n---\nTypes.\n"


@pytest.fixture
def desk(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> Desk:
    return Desk(tmp_path, capsys)  # type: ignore[arg-type]  # pytest gives a Path


def test_every_rule_file_is_shown_also_those_of_folders_that_nothing_has_touched(
    desk: Desk,
) -> None:
    desk.put(".croze/rules/py.md", PYTHON, trusted=True)
    desk.put(".croze/rules/asked.md", "---\ndescription: d\n---\nBody.", trusted=True)
    desk.put(".autocoderrules/old.md", "Old.")
    desk.put("src/AGENTS.md", "Source.", trusted=True)
    desk.put("AGENTS.md", "Law.")
    desk.put("CLAUDE.md", "@AGENTS.md")
    desk.put(".github/copilot-instructions.md", "Law.")
    desk.put("~/.config/croze/rules/py.md", "The user's.")
    found = {
        each["path"]: (each["state"], each["reason"]) for each in desk.found("--kind", "rules")
    }
    user = str(desk.home / ".config/croze/rules/py.md")
    assert found == {
        ".croze/rules/asked.md": ("loaded", "it is listed and read on demand"),
        ".croze/rules/py.md": ("loaded", "it holds once a file matches *.py"),
        ".autocoderrules/old.md": ("shadowed", ".croze/rules is used instead of .autocoderrules"),
        user: ("shadowed", ".croze/rules/py.md has the same name"),
        "CLAUDE.md": ("untrusted", "the user doesn't trust this content of it"),
        ".github/copilot-instructions.md": ("shadowed", "it says the same as AGENTS.md"),
        "src/AGENTS.md": ("loaded", "it holds once something in src/ is looked at"),
    }


def test_it_is_told_in_chinese_too(desk: Desk) -> None:
    desk.put(".croze/rules/py.md", PYTHON, trusted=True)
    _code, out, _err = desk.run("--kind", "rules", language="zh_CN.UTF-8")
    assert "有文件匹配 *.py 时生效" in out
