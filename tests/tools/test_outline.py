"""list_code_definition_names and repo_map as a model sees them."""

import asyncio
import threading

import pytest

from croze.retrieval.outlines import OutlineCache
from croze.text.tokens import estimate
from croze.tools.builtin import outline as tools
from croze.tools.builtin.outline import ListCodeDefinitionNames, RepoMapTool
from croze.types.parts import ToolCall


@pytest.fixture
def project(fake_context):
    files = {
        ".gitignore": "ignored/\n",
        "src/engine.py": "LIMIT = 3\n\nclass Engine:\n    def start(self):\n        def inner(): pass\n",
        "src/app.ts": "import { run } from './run';\nexport function main() { run() }\n",
        "src/use.py": "from engine import Engine\ndef use(): return Engine()\n",
        "ignored/x.py": "def hidden(): pass\n",
        "README.md": "# Readme\n",
        "min.js": "var a=1;" * 2_000,
    }
    for path, text in files.items():
        target = fake_context.workspace.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return fake_context


async def test_a_file_is_outlined_with_lines_and_nesting(project):
    result = await ListCodeDefinitionNames(path="src/engine.py").run(project)
    assert result.text == (
        "src/engine.py (5 lines):\n  1: LIMIT = 3\n  3-5: class Engine\n    4-5: def start(self)\n"
        "      5: def inner()"
    )
    assert result.message == "src/engine.py: 4 definitions in 1 file."
    (file,) = result.data["files"]
    assert file["definitions"][1:3] == [
        {"name": "Engine", "kind": "class", "start": 3, "end": 5, "depth": 0},
        {"name": "start", "kind": "method", "start": 4, "end": 5, "depth": 1},
    ]


async def test_a_folder_is_outlined_without_what_is_ignored_or_minified(project):
    result = await ListCodeDefinitionNames().run(project)
    assert [file["path"] for file in result.data["files"]] == [
        "src/app.ts", "src/engine.py", "src/use.py",
    ]  # fmt: skip
    assert "hidden" not in result.text
    assert result.message.endswith("passed over: 1 minified.")
    named = await ListCodeDefinitionNames(path="ignored").run(project)
    assert "1: def hidden()" in named.text


async def test_sensitive_files_are_not_looked_at_with_their_folder(project):
    (project.workspace.root / "src/credentials.json").write_text('{"password": "hunter2"}')
    (project.workspace.root / "src/settings.json").write_text('{"colour": 1}')
    result = await ListCodeDefinitionNames(path="src").run(project)
    assert "colour" in result.text
    assert "password" not in result.text


async def test_a_file_without_a_known_language_says_what_to_do(project):
    result = await ListCodeDefinitionNames(path="README.md").run(project)
    assert (result.ok, result.code) == (False, "no_outline")
    assert "read_file" in result.text


async def test_what_is_not_there_or_outside_is_told(project):
    for tool in (ListCodeDefinitionNames, RepoMapTool):
        assert (await tool(path="nowhere.py").run(project)).code == "file_not_found"
        assert (await tool(path="../x").run(project)).code == "path_traversal_blocked"
    assert (await RepoMapTool(focus=("nowhere.py",)).run(project)).code == "file_not_found"


async def test_broken_files_are_outlined_and_told(project):
    (project.workspace.root / "b.py").write_text("def a(): pass\ndef b(:\n")
    result = await ListCodeDefinitionNames(path="b.py").run(project)
    assert "1: def a()" in result.text
    assert "1 with syntax errors" in result.message


async def test_where_not_all_has_room_the_outer_definitions_stay(project):
    body = "".join(f"    def method_number_{n}(self): pass\n" for n in range(60))
    for n in range(8):
        (project.workspace.root / f"src/big{n}.py").write_text(f"class Big{n}:\n{body}")
    result = await ListCodeDefinitionNames(path="src").run(project)
    assert len(result.text) <= tools.MAX_CHARACTERS
    assert all(f"class Big{n}" in result.text for n in range(8))
    assert "method_number_1(" not in result.text
    assert result.truncated.startswith("12 shown")
    assert result.data["total"] == 8 * 61 + 6


async def test_where_even_those_have_no_room_the_first_files_stay(project):
    rows = "".join(f"def function_number_{n}(): pass\n" for n in range(400))
    (project.workspace.root / "src/a.py").write_text(rows)
    result = await ListCodeDefinitionNames(path="src").run(project)
    assert len(result.text) <= tools.MAX_CHARACTERS
    shown = result.text.count("\n")
    assert result.truncated.startswith(f"{shown} shown")


async def test_the_map_shows_what_is_used_most_within_its_budget(project):
    result = await RepoMapTool(tokens=100).run(project)
    assert result.text.startswith("src/engine.py:\n")
    assert "  3-5: class Engine" in result.text
    assert result.data["tokens"] == estimate(result.text) <= 100
    assert result.data["definitions"][0]["name"] == "Engine"
    assert "of 6 definitions in" in result.message


async def test_the_map_of_a_folder_without_code_says_so(project):
    (project.workspace.root / "docs").mkdir()
    result = await RepoMapTool(path="docs").run(project)
    assert (result.ok, result.text) == (True, "")
    assert result.message == "docs has no code that can be mapped."


async def test_both_share_what_the_run_knows(project):
    await RepoMapTool().run(project)
    cache = project.cache.beside(OutlineCache)
    assert isinstance(cache, OutlineCache)
    assert project.cache.beside(OutlineCache) is cache


async def test_a_cancelled_map_stops_its_thread(project, monkeypatch):
    entered = asyncio.Event()
    loop = asyncio.get_running_loop()
    ended = threading.Event()

    def rank(found, focus, stopped):
        loop.call_soon_threadsafe(entered.set)
        while not stopped():
            pass
        ended.set()
        raise tools.Stopped

    monkeypatch.setattr(tools, "rank", rank)
    task = asyncio.create_task(RepoMapTool().run(project))
    async with asyncio.timeout(60):
        await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(ended.wait, 60)


async def test_digests_keep_the_first_rows(project):
    call = ToolCall("1", "x")
    listed = await ListCodeDefinitionNames(path="src").run(project)
    assert "class Engine" in ListCodeDefinitionNames.digest(call, listed)
    mapped = await RepoMapTool().run(project)
    assert RepoMapTool.digest(call, mapped).startswith(mapped.message)
