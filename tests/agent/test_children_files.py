"""Several agents change one project: each change has one owner, and all of them are the turn's."""

import asyncio
from pathlib import Path

from croze.types.event import FilesChanged, ToolReturned
from croze.types.tool import FileChange
from tests.agent.conftest import BOUND, Desk, bodies
from tests.agent.team_cast import Cast, opened, reports, subagents


def write(path: str, content: str) -> tuple[str, dict[str, str]]:
    return "write_to_file", {"path": path, "content": content}


def command(text: str) -> tuple[str, dict[str, str]]:
    return "execute_command", {"command": text}


def changes(desk_events: object) -> list[FileChange]:
    return [each for body in bodies(desk_events, FilesChanged) for each in body.changes]  # type: ignore[arg-type]


async def test_each_change_is_its_childs_and_the_callers_log_has_all(desk: Desk) -> None:
    say = desk.reply
    Cast(
        desk,
        [say("", [write("main.txt", "m"), subagents("do alpha", "do beta")]), say("ok")],
        {
            "alpha": [say("", [write("a.txt", "a"), command("echo a > a2.txt")]), say("done")],
            "beta": [say("", [write("b.txt", "b"), command("echo b > b2.txt")]), say("done")],
        },
    )
    session, _ = await desk.run("go")
    alpha, beta = opened(session)
    by = {each.path: each.by for each in changes(session.events)}
    assert by == {
        "main.txt": "",
        "a.txt": alpha.child, "a2.txt": alpha.child,
        "b.txt": beta.child, "b2.txt": beta.child,
    }  # fmt: skip
    assert [set(report.files) for report in reports(session)] == [
        {"a.txt", "a2.txt"}, {"b.txt", "b2.txt"},
    ]  # fmt: skip
    for known, paths in ((alpha, {"a.txt", "a2.txt"}), (beta, {"b.txt", "b2.txt"})):
        assert {each.path for each in changes(await desk.log(known.child))} == paths


async def test_what_is_written_while_anothers_command_runs_is_not_that_commands(desk: Desk) -> None:
    """The command goes on until the other's file is there."""
    say = desk.reply
    wait = "while [ ! -e b.txt ]; do sleep 0.02; done; echo more >> b.txt; echo a > a.txt"
    Cast(
        desk,
        [say("", [subagents("do alpha", "do beta")]), say("ok")],
        {
            "alpha": [say("", [command(wait)]), say("done")],
            "beta": [
                say("", [command("ls"), write("b.txt", "b\n"), write("c.txt", "c")]),
                say("done"),
            ],
        },
    )
    session, _ = await desk.run("go")
    alpha, beta = opened(session)
    whose = [(each.path, each.by) for each in changes(session.events)]
    assert ("c.txt", beta.child) in whose
    assert ("c.txt", alpha.child) not in whose
    assert ("a.txt", alpha.child) in whose
    # Both wrote b.txt, each its own part of it.
    assert {by for path, by in whose if path == "b.txt"} == {alpha.child, beta.child}
    parts = [each for each in changes(session.events) if each.path == "b.txt"]
    assert [each.kind for each in sorted(parts, key=lambda each: each.kind)] == [
        "added",
        "modified",
    ]


async def test_commands_that_may_change_files_take_turns_and_others_do_not(desk: Desk) -> None:
    say = desk.reply
    lock = "mkdir busy || touch overlap; sleep 0.1; rmdir busy"
    Cast(
        desk,
        [say("", [subagents(*(f"do role{n}" for n in range(3)))]), say("ok")],
        {f"role{n}": [say("", [command(lock)]), say("done")] for n in range(3)},
    )
    session, _ = await desk.run("go")
    assert not (desk.project / "overlap").exists()
    for known in opened(session):
        (returned,) = bodies(await desk.log(known.child), ToolReturned)
        assert returned.ok


async def test_a_file_that_another_has_changed_is_not_edited_unread(desk: Desk) -> None:
    say = desk.reply
    (desk.project / "a.txt").write_text("one\ntwo\n")
    edit = "<<<<<<< SEARCH\none\n=======\n1\n>>>>>>> REPLACE"
    other = "<<<<<<< SEARCH\ntwo\n=======\n2\n>>>>>>> REPLACE"
    read = ("read_file", {"path": "a.txt"})
    Cast(
        desk,
        [
            say("", [read, subagents("do alpha")]),
            say("", [("replace_in_file", {"path": "a.txt", "diff": other})]),
            say("I look again."),
        ],
        {
            "alpha": [
                say("", [read]),
                say("", [("replace_in_file", {"path": "a.txt", "diff": edit})]),
                say("done"),
            ]
        },
    )
    session, _ = await desk.run("go")
    assert (desk.project / "a.txt").read_text() == "1\ntwo\n"
    refused = bodies(session.events, ToolReturned)[-1]
    assert not refused.ok
    assert refused.code == "file_changed"


async def test_undoing_the_callers_turn_takes_back_what_its_children_did(desk: Desk) -> None:
    say = desk.reply
    (desk.project / "old.txt").write_text("old\n")
    Cast(
        desk,
        [
            say("", [write("main.txt", "m"), subagents("do alpha", "do beta", mode="serial")]),
            say("ok"),
        ],
        {
            "alpha": [
                say("", [("read_file", {"path": "old.txt"})]),
                say("", [write("old.txt", "alpha\n"), write("a/a.txt", "a")]),
                say("done"),
            ],
            "beta": [say("", [command("echo beta >> old.txt; rm a/a.txt; rmdir a")]), say("done")],
        },
    )
    async with desk.session() as session:
        await asyncio.wait_for(session.submit("go"), BOUND)
        assert (desk.project / "old.txt").read_text() == "alpha\nbeta\n"
        rewound = await session.rewinder().undo()
        assert rewound.lost == ()
        assert files(desk.project) == {"old.txt": "old\n"}
        await session.rewinder().redo()
        assert files(desk.project) == {"old.txt": "alpha\nbeta\n", "main.txt": "m\n"}


def files(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }
