"""get_workspace_info in projects."""

import os

from croze.tools.builtin import workspace_info
from croze.tools.builtin.workspace_info import GetWorkspaceInfo
from croze.tools.registry import builtin


async def test_a_projects_ignored_and_hidden_folders_are_not_counted(fake_context):
    files = fake_context.workspace.files
    for path in ("src/a.py", "b.txt", "node_modules/x.js", ".idea/x", "build/y", "logs/z", ".env"):
        files.write(path, b"1234")
    files.write(".gitignore", b"logs\n")
    result = await GetWorkspaceInfo().run(fake_context)
    assert result.ok
    assert (result.data["fileCount"], result.data["dirCount"], result.data["totalSize"]) == (
        3,
        1,
        13,
    )


async def test_a_very_large_project_is_counted_in_part_and_that_is_told(fake_context, monkeypatch):
    monkeypatch.setattr(workspace_info, "MOST_ENTRIES", 5)
    for number in range(9):
        fake_context.workspace.files.write(f"{number}", b"")
    result = await GetWorkspaceInfo().run(fake_context)
    assert result.data["fileCount"] == 5
    assert result.truncated == "there is more: only the first 5 were counted"
    assert result.truncated in result.message


async def test_what_could_not_be_counted_is_told(fake_context):
    root = fake_context.workspace.root
    (root / os.fsdecode(b"caf\xe9")).mkdir()
    (root / "a").write_text("x")
    result = await GetWorkspaceInfo().run(fake_context)
    assert (result.ok, result.data["fileCount"]) == (True, 1)
    assert "not all was counted" in result.message


def test_it_is_not_part_of_the_core_and_only_reads():
    doc = builtin().get("get_workspace_info").doc
    assert (doc.core, doc.access.read_only) == (False, True)
