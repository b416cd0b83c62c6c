"""What the agent has before its eyes is not sent to it again; everything else always is."""

import hashlib
import os
import time

import pytest

from croze.context.project import HINT_TOKENS
from croze.text.tokens import estimate
from croze.tools.again import LEAST
from croze.tools.builtin.files import ReadFile
from croze.tools.builtin.search import ListFiles
from croze.workspace.cache import RunCache
from croze.workspace.workspace import Workspace

LINES = [
    f"line {number} of the file, long enough to be worth something" for number in range(1, 301)
]


@pytest.fixture
def ctx(fake_context):
    fake_context.cache = RunCache(clock=lambda: time.time_ns() + 10_000_000_000)
    fake_context.cache.watch(fake_context.workspace.files)
    root = fake_context.workspace.root
    (root / "a.py").write_text("\n".join(LINES) + "\n")
    (root / "short.py").write_text("x = 1\n")
    for number in range(80):
        folder = root / f"folder{number}"
        folder.mkdir()
        (folder / "file.py").touch()
    return fake_context


async def read(ctx, path="a.py", **more):
    return ctx.remember(await ReadFile(path=path, **more).run(ctx))


async def listed(ctx, path=".", **more):
    return ctx.remember(await ListFiles(path=path, **more).run(ctx))


def is_whole(result):
    return result.ok and "unchanged" not in result.message


def test_a_result_that_can_be_referred_to_carries_its_id():
    assert LEAST == HINT_TOKENS


async def test_a_second_read_names_the_message_that_shows_it(ctx):
    first = await read(ctx)
    again = await read(ctx)
    assert is_whole(first)
    assert again.message == (
        "a.py, lines 1-300 of 300: unchanged since message 00000001, which shows it in full."
    )
    assert "line 7" not in again.text
    assert again.ok
    assert again.data == first.data
    assert again.observed == first.observed
    assert again.observed == {
        "a.py": hashlib.sha256((ctx.workspace.root / "a.py").read_bytes()).hexdigest()
    }
    assert again.look.unchanged == ctx.results[0].message_id
    price = estimate(first.text) + estimate(first.message)
    assert again.look.saved == price - estimate(again.message) - estimate(again.text)
    assert again.view.title.endswith("unchanged")


async def test_who_asks_twice_in_a_row_gets_the_text_itself(ctx):
    results = [await read(ctx) for _ in range(5)]
    assert [is_whole(result) for result in results] == [True, False, True, False, True]
    assert results[2].text == results[0].text
    assert results[3].look.unchanged == ctx.results[2].message_id


@pytest.mark.parametrize(
    ("before", "after", "whole"),
    [
        ({}, {"start_line": 100, "end_line": 250}, False),
        ({"start_line": 10, "end_line": 200}, {"start_line": 50, "end_line": 200}, False),
        ({"start_line": 10, "end_line": 200}, {"start_line": 9, "end_line": 200}, True),
        ({"start_line": 10, "end_line": 200}, {"start_line": 50}, True),
        ({"start_line": 10, "end_line": 200}, {}, True),
        ({"start_line": 1, "end_line": 200}, {"start_line": 100, "end_line": 130}, False),
    ],
)
async def test_only_a_read_that_holds_all_the_lines_stands_for_them(ctx, before, after, whole):
    await read(ctx, **before)
    result = await read(ctx, **after)
    assert is_whole(result) is whole


async def test_a_part_is_refused_only_where_that_saves_something(ctx):
    await read(ctx)
    assert is_whole(await read(ctx, start_line=5, end_line=8))
    for _ in range(2):
        assert is_whole(await read(ctx, "short.py"))


@pytest.mark.parametrize("same_time", [False, True])
async def test_a_changed_file_is_shown_again(ctx, same_time):
    await read(ctx)
    path = ctx.workspace.root / "a.py"
    before = os.stat(path)
    path.write_text("\n".join(LINES).replace("line 7 ", "LINE 7 ") + "\n")
    if same_time:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    result = await read(ctx)
    assert is_whole(result)
    assert "LINE 7" in result.text
    assert result.observed != {"a.py": ctx.results[0].look.digest}


async def test_after_an_own_write_the_new_content_is_shown(ctx):
    await read(ctx)
    ctx.workspace.files.write("a.py", ("\n".join(LINES[::-1]) + "\n").encode())
    result = await read(ctx)
    assert is_whole(result)
    assert result.text.startswith("1\tline 300 ")
    assert not is_whole(await read(ctx))


async def test_a_message_that_left_the_context_is_no_answer(ctx):
    await read(ctx)
    ctx.gone.add(ctx.results[0].message_id)
    result = await read(ctx)
    assert is_whole(result)
    assert result.look.hit
    assert not is_whole(await read(ctx))


async def test_what_another_agent_saw_is_shown_to_this_one(ctx):
    await read(ctx)
    results, ctx.results = ctx.results, []
    result = await read(ctx)
    assert is_whole(result)
    assert result.look.hit
    assert result.text == results[0].text


async def test_in_a_task_workspace_every_read_is_whole(ctx):
    ctx.workspace = Workspace("t", ctx.workspace.root, "agent", kind="task")
    assert all([is_whole(await read(ctx)) for _ in range(3)])
    assert all([is_whole(await listed(ctx)) for _ in range(3)])


async def test_a_sensitive_file_is_never_cached(ctx):
    (ctx.workspace.root / "server.key").write_text("\n".join(LINES))
    first, second = await read(ctx, "server.key"), await read(ctx, "server.key")
    assert not first.look.hit
    assert not second.look.hit


async def test_lines_found_by_a_query_stand_for_nothing_and_nothing_for_them(ctx):
    first = await read(ctx, query="line")
    assert is_whole(first)
    assert is_whole(await read(ctx))
    assert is_whole(await read(ctx, query="line"))


async def test_where_the_rest_is_told_it_is_told_again(ctx):
    path = ctx.workspace.root / "long.py"
    path.write_text("\n".join(LINES * 3) + "\n")
    first, again = await read(ctx, "long.py"), await read(ctx, "long.py")
    assert not is_whole(again)
    assert again.truncated == first.truncated
    assert "start_line=501" in again.message
    assert is_whole(await read(ctx, "long.py", start_line=501))


async def test_a_file_too_large_to_keep_is_compared_by_its_content(ctx):
    path = ctx.workspace.root / "large.txt"
    with open(path, "w") as file:
        for number in range(160_000):
            file.write(f"line {number} of a file that is too large to be held in memory\n")
    assert path.stat().st_size > 8 << 20
    part = {"start_line": 1_000, "end_line": 1_200}
    first, again = await read(ctx, "large.txt", **part), await read(ctx, "large.txt", **part)
    assert is_whole(first)
    assert not is_whole(again)
    assert not again.look.hit


async def test_a_second_listing_names_the_message_that_shows_it(ctx):
    first, again = await listed(ctx), await listed(ctx)
    assert is_whole(first)
    assert "unchanged since message 00000001" in again.message
    assert again.data == first.data
    assert again.look.hit
    assert is_whole(await listed(ctx, recursive=True))
    (ctx.workspace.root / "new.py").touch()
    changed = await listed(ctx)
    assert is_whole(changed)
    assert "new.py" in changed.text


async def test_listings_are_kept_for_agents_to_come(ctx):
    await listed(ctx, "folder3")
    await listed(ctx, "missing")
    visited = ctx.cache.visited(ctx.workspace.files)
    assert [(each.path, each.items) for each in visited] == [("folder3", ("file.py",))]


async def test_an_empty_file_and_lines_that_are_not_there_are_told_each_time(ctx):
    (ctx.workspace.root / "empty").touch()
    for _ in range(2):
        assert (await read(ctx, "empty")).message == "empty is empty."
        assert (await read(ctx, "a.py", start_line=999)).code == "no_such_lines"
