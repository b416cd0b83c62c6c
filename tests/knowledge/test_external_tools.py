"""External tools on real folders: which files are tools, how each is run, what their comments say."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.knowledge.tool_helps import LINES, MOST_CHARACTERS, comments_of, tidy
from tests.knowledge.tool_bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_scripts_count_by_suffix_and_programs_without_one_where_they_are_executable(
    bench: Bench,
) -> None:
    for name in ("a.py", "b.sh", "c.js", "d.pl"):
        bench.put(f".croze/tools/{name}", "x\n", mode=0o644)
    bench.put(".croze/tools/program", "#!/bin/sh\n")
    for name in ("README", "LICENSE", "notes.md", "old.py.bak", ".hidden.sh"):
        bench.put(f".croze/tools/{name}", "x", mode=0o644)
    bench.put(".croze/tools/library/inner.py", "x")
    (bench.project / ".croze/tools/broken").symlink_to("nowhere")
    found = [(tool.file, tool.found.state) for tool in bench.tools().look()]
    assert found == [
        ("a.py", "loaded"), ("b.sh", "loaded"), ("broken", "broken"), ("c.js", "loaded"),
        ("d.pl", "loaded"), ("program", "loaded"),
    ]  # fmt: skip


def test_folders_go_before_each_other_and_what_is_shadowed_is_told(bench: Bench) -> None:
    for folder in (
        ".croze/tools", ".autocodertools", ".auto-coder/.autocodertools", "~/.config/croze/tools",
        "~/.auto-coder/.autocodertools", "~/.config/croze/tools/repos/project",
    ):  # fmt: skip
        bench.put(f"{folder}/same.sh", f"# Usage: from {folder}\n")
    bench.put("~/.config/croze/tools/repos/project/own.sh", "# Usage: own\n")
    bench.put("~/.config/croze/tools/repos/another/other.sh", "# Usage: other\n")
    tools = bench.tools().look()
    assert [(tool.file, tool.found.state) for tool in tools] == [
        ("same.sh", "loaded"), *[("same.sh", "shadowed")] * 4, ("own.sh", "loaded"),
        ("same.sh", "shadowed"),
    ]  # fmt: skip
    assert tools[1].found.reason == ".croze/tools/same.sh has the same name"
    assert tools[0].help.text == "Usage: from .croze/tools"
    assert [tool.found.source for tool in tools[-2:]] == ["repos", "repos"]


def test_how_a_tool_is_run_is_told_so_that_it_works_from_the_root(bench: Bench) -> None:
    bench.put(".croze/tools/my tool.sh", "#!/bin/sh\n")
    bench.put(".croze/tools/plain.sh", "echo\n", mode=0o644)
    bench.put(".croze/tools/noted.py", "print()\n")
    bench.put("~/.config/croze/tools/mine", "#!/bin/sh\n")
    commands = {tool.file: tool.command(bench.project) for tool in bench.tools().look()}
    shell = "bash" if shutil.which("bash") else "sh"
    assert commands == {
        "my tool.sh": "'.croze/tools/my tool.sh'",
        "plain.sh": f"{shell} .croze/tools/plain.sh",
        "noted.py": "python3 .croze/tools/noted.py",
        "mine": str(bench.config / "tools/mine"),
    }


def test_a_missing_interpreter_is_the_tools_own_failure(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "sh").symlink_to("/bin/sh")
    bench = Bench(tmp_path, env={"PATH": str(programs)})
    bench.put(".croze/tools/a.rb", "puts 1\n")
    bench.put(".croze/tools/b.py", "#!/usr/bin/env python9\n")
    bench.put(".croze/tools/c", "#!/opt/nothing/here -x\n")
    bench.put(".croze/tools/d.sh", "#!/bin/sh\r\necho\r\n")
    bench.put(".croze/tools/e", "#!\n")
    bench.put(".croze/tools/f.go", "package main\n")
    bench.put(".croze/tools/g.sh", "echo\n")
    problems = {tool.file: tool.problem for tool in bench.tools().look()}
    assert problems == {
        "a.rb": "ruby is not installed",
        "b.py": "python9 is not installed",
        "c": "/opt/nothing/here is not installed",
        "d.sh": "its first line ends in CR LF, so the system doesn't find what runs it",
        "e": "its first line names no program",
        "f.go": "go is not installed",
        "g.sh": "",
    }


def test_a_project_that_is_not_trusted_has_no_tools_and_none_is_read(tmp_path: Path) -> None:
    bench = Bench(tmp_path, trusted=False)
    file = bench.put(".croze/tools/evil.sh", "#!/bin/sh\n")
    file.chmod(0o300)
    bench.put("~/.config/croze/tools/evil.sh", "#!/bin/sh\n")
    first, second = bench.tools().look()
    assert (first.found.state, first.usable, first.found.sha256) == ("untrusted", False, "")
    assert (second.found.state, second.usable) == ("loaded", True)


def test_a_changed_file_is_read_again_and_one_that_is_gone_is_no_tool(bench: Bench) -> None:
    file = bench.put("~/.config/croze/tools/a.sh", "# Usage: one\n")
    tools = bench.tools()
    assert [tool.help.text for tool in tools.look()] == ["Usage: one"]
    file.write_text("# Usage: two, longer\n")
    assert [tool.help.text for tool in tools.look()] == ["Usage: two, longer"]
    file.unlink()
    assert tools.look() == []


def test_links_out_of_the_project_pipes_and_huge_files_are_told(bench: Bench) -> None:
    secret = bench.put("~/secret.sh", "# Usage: secret\n")
    folder = bench.project / ".croze/tools"
    folder.mkdir(parents=True)
    (folder / "out.sh").symlink_to(secret)
    (folder / "loop.sh").symlink_to("loop.sh")
    os.mkfifo(folder / "pipe.sh")
    with (folder / "huge").open("wb") as file:
        file.truncate(33 << 20)
    (folder / "huge").chmod(0o755)
    tools = bench.tools().look()
    assert {tool.found.name: tool.found.state for tool in tools} == dict.fromkeys(
        ("huge", "loop", "out", "pipe"), "broken"
    )
    assert all("secret" not in tool.help.text for tool in tools)


@pytest.mark.parametrize(
    ("name", "text", "help_"),
    [
        ("a.py", "#!/usr/bin/env python3\n# A tool.\n# Usage: a FILE\n#\n#   -x  more\n\nx = 1\n",
         "Usage: a FILE\n\n  -x  more"),
        ("a.sh", "# 说明：统计\n# 用法: a\n", "说明：统计\n用法: a"),
        ("a.js", "// Description: does\n//\n//\n// never\n", "Description: does"),
        ("a.rs", "# Usage: no\n// Help: yes\n", "Help: yes"),
        ("a.go", "// nothing\npackage main\n", ""),
        ("a", "#!/bin/sh\n# HELP: loud\necho\n# not this\n", "HELP: loud"),
        ("a.php", "<?php\n# Usage: p\n", "Usage: p"),
        ("a.sh", "\ufeff# Usage: with a mark\r\n# more\r\n", "Usage: with a mark\nmore"),
    ],
)  # fmt: skip
def test_comments_are_help_from_their_keyword_to_two_empty_lines(
    name: str, text: str, help_: str
) -> None:
    assert comments_of(name, text.encode()).text == help_


def test_comments_below_the_first_lines_are_no_help() -> None:
    assert not comments_of("a.sh", ("\n" * LINES + "# Usage: late\n").encode()).text
    assert comments_of("a.sh", ("\n" * (LINES - 1) + "# Usage: last\n").encode()).text


@given(st.binary(max_size=2_000), st.sampled_from(["a.py", "a.js", "a"]))
def test_whatever_a_file_begins_with_its_comments_can_be_looked_at(data: bytes, name: str) -> None:
    found = comments_of(name, data)
    assert found == comments_of(name, data)
    assert len(found.text) <= MOST_CHARACTERS + 60
    assert "\x1b" not in found.text


def test_a_help_is_told_without_escapes_and_secrets_within_bounds() -> None:
    key = "sk-ant-api03-" + "Zk3b9Qw7" * 12
    told = tidy(f"\n\x1b[31mUsage\x1b[0m: a\t-x  \n{key}\n" + "line\n" * 3_000)
    assert told.startswith("Usage: a    -x\n")
    assert key not in told
    assert told.endswith(" more characters")
    assert len(told) < MOST_CHARACTERS + 60
