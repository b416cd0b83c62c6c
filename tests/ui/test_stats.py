"""`croze stats`: what the logs say, for one conversation and for all, and the line at a run's end."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import closing
from itertools import count

from croze.app.config import load
from croze.app.stats import MEASURED, TOKENS_A_CALL, Stats, StatsFold, stats_of
from croze.store.store import Store
from croze.types.event import (
    Body,
    Compacted,
    Event,
    FactAdded,
    ModelCalled,
    ModelSaid,
    SessionOpened,
    Stopped,
    ToolReturned,
)
from croze.types.ids import SystemSource
from croze.types.model import Cost, Usage
from croze.types.parts import Text
from croze.types.tool import Look
from croze.ui.sums import Sums, cache_parts
from tests.ui.conftest import Shell

DATA = {
    "size": 1234, "max_depth": 3, "entries": 80, "left_out": 5, "seconds": 0.012,
    "cached_at": "2026-11-22T00:00:00.000Z", "error": None, "shared": False,
}  # fmt: skip
TREE = FactAdded("tree", "t", "…", reply="Yes.", data=DATA)
_numbers = count(1)


def called() -> ModelCalled:
    return ModelCalled(1, "m", "", 1, "", "", 1, 10, 10)


def said(**usage: int | None) -> ModelSaid:
    cost = Cost(0.25, 0.25) if usage.get("input") is not None else Cost()
    return ModelSaid("m", 1, "m", (Text("x"),), usage=Usage(**usage), cost=cost)


def returned(
    name: str, look: Look | None = None, *, ok: bool = True, tokens: int = 10, text: str = ""
) -> ToolReturned:
    number = f"{next(_numbers):09}"
    return ToolReturned(number, number, name, ok, text=text, tokens=tokens, seconds=0.5, look=look)


def read(path: str, *, hit: bool = False, unchanged: str = "", saved: int = 0) -> ToolReturned:
    look = Look(f"read:{path}", "0", 1, 9, hit=hit, unchanged=unchanged, saved=saved)
    return returned("read_file", look)


def listing(path: str, tokens: int = 200) -> ToolReturned:
    return returned("list_files", Look(f"list:{path}", "0", 1, 1), tokens=tokens)


def log(*given: Body) -> list[Event]:
    return [Event("s", number, 0, body) for number, body in enumerate(given, 1)]


def folded(*logs: Sequence[Body]) -> Stats:
    found = StatsFold()
    for each in logs:
        found.take(log(*each))
    return found.stats()


def test_tokens_steps_and_money_are_summed_and_what_is_unknown_is_counted() -> None:
    found = folded(
        [
            called(),
            said(input=1000, cached=600, output=50),
            called(),
            said(input=1000, cached=1000, output=50),
        ],
        [called(), said(input=None, output=None)],
    )
    assert (found.sessions, found.steps) == (2, 3)
    assert (found.input_tokens, found.cached_tokens, found.output_tokens) == (2000, 1600, 100)
    assert (found.cached_share, found.cost, found.unknown) == (0.8, 1.0, 1)
    nothing = folded([])
    assert (nothing.cached_share, nothing.cost, nothing.cache.hit_rate) == (None, None, None)


def test_tools_are_counted_by_name_the_most_used_first() -> None:
    found = folded(
        [returned("a", text="größe"), returned("b", ok=False), returned("b", tokens=5, text="x")],
    )
    assert [(t.name, t.calls, t.failures, t.seconds, t.bytes, t.tokens) for t in found.tools] == [
        ("b", 2, 1, 1.0, 1, 15),
        ("a", 1, 0, 0.5, 7, 10),
    ]


def test_looks_are_counted_by_path_and_by_what_the_cache_spared() -> None:
    found = folded(
        [
            TREE,
            read("a.py"),
            read("a.py", hit=True),
            read("a.py", hit=True, unchanged="m", saved=700),
            listing("src"),
        ]
    )
    cache = found.cache
    assert (cache.scans, cache.hits, cache.misses, cache.hit_rate) == (1, 2, 2, 0.5)
    assert (cache.unchanged, cache.tokens_unchanged) == (1, 700)
    assert found.accesses == {"a.py": 3, "src/": 1}
    assert [(row.path, row.reads, row.sessions, row.hits) for row in found.hot] == [
        ("a.py", 3, 1, 2)
    ]
    assert found.tree is not None
    assert (found.tree.size, found.tree.max_depth, found.tree.seconds) == (1234, 3, 0.012)


def test_a_tree_saves_a_listing_where_the_root_was_not_listed_all_the_same() -> None:
    assert folded([TREE]).cache.saved_calls == 1
    assert folded([TREE]).cache.saved_tokens == TOKENS_A_CALL
    assert folded([TREE, listing(".")]).cache.saved_calls == 0
    assert folded([TREE], [TREE, listing(".")], [TREE]).cache.saved_calls == 2
    failed = FactAdded("tree", "t", "…", reply="Yes.", data={**DATA, "error": "denied"})
    assert folded([failed]).cache.saved_calls == 0
    again = FactAdded("tree", "t2", "…", layer="current", data=DATA)
    assert folded([TREE, again]).cache.saved_calls == 1
    assert folded([TREE, again]).cache.scans == 2


def test_the_newest_tree_is_shown_whichever_session_comes_first() -> None:
    old = FactAdded(
        "tree", "t", "…", reply="Yes.", data={**DATA, "size": 1, "cached_at": "2026-01-01T"}
    )
    for order in ([TREE], [old]), ([old], [TREE]):
        tree = folded(*order).tree
        assert tree is not None
        assert tree.size == DATA["size"]


def test_the_listings_of_others_save_those_that_were_not_made_again() -> None:
    visited = FactAdded("visited", "v", "…", reply="Yes.", data={"folders": ["a", "b", "c"]})
    shared = FactAdded("tree", "t", "…", reply="Yes.", data={**DATA, "shared": True})
    found = folded([shared, visited, listing("b")])
    assert (found.cache.scans, found.cache.saved_calls) == (0, 3)


def test_a_listing_is_worth_what_listings_were_measured_to_be() -> None:
    many = [listing(f"x{number}", tokens=300) for number in range(MEASURED)]
    assert folded([TREE, *many]).cache.tokens_a_call == 300
    assert folded([TREE, *many[1:]]).cache.tokens_a_call == TOKENS_A_CALL


def test_compactions_are_summed_by_policy() -> None:
    found = folded(
        [
            Compacted("batch", "full", tokens_before=900, tokens_after=300),
            Compacted("zone", "full", tokens_before=50, tokens_after=60),
            Compacted("batch", "full", tokens_before=500, tokens_after=300),
        ]
    )
    assert [(row.policy, row.count, row.saved_tokens) for row in found.compactions] == [
        ("batch", 2, 800),
        ("zone", 1, 0),
    ]


def test_what_a_fork_took_over_is_counted_where_it_came_from() -> None:
    opened = SessionOpened("fork", forked_from=("s", 3))
    found = folded([opened, called(), said(input=10, output=1), called(), said(input=20, output=2)])
    assert (found.steps, found.input_tokens) == (1, 20)


def test_the_end_of_a_run_tells_the_cache_in_one_line_and_nothing_where_it_did_nothing() -> None:
    assert cache_parts(stats_of(log(called()))) == []
    parts = cache_parts(
        stats_of(log(TREE, read("a.py"), read("a.py", hit=True, unchanged="m", saved=500)))
    )
    assert parts == [
        "tree: 1234 characters, depth 3, 5 of 80 entries left out, 12 ms",
        "cache: 1 of 2 looks (50 %)",
        "about 1.5k tokens saved",
    ]
    failed = FactAdded("tree", "t", "…", reply="Yes.", data={**DATA, "error": "denied"})
    assert cache_parts(stats_of(log(failed))) == ["tree: none (denied)"]


def test_the_chats_last_line_tells_of_the_cache_only_where_it_saved_something() -> None:
    stopped = Stopped("done", steps=1)
    plain, saving = Sums(), Sums()
    plain.take(read("a.py"))
    saving.take(read("a.py", unchanged="m", saved=1_500))
    assert "not sent again" not in plain.line(stopped)
    assert "1.5k tokens not sent again" in saving.line(stopped)


def store(shell: Shell, *logs: Sequence[Body]) -> list[str]:
    """Sessions in the project's log, as processes that have ended left them; their ids."""
    folder = load(shell.project, env=shell.env).store_folder

    async def write() -> list[str]:
        opened = Store.open(folder, source=SystemSource())
        made = []
        try:
            for each in logs:
                with closing(await opened.create()) as written:
                    await written.append(*each, durable=True)
                    made.append(written.session)
        finally:
            opened.close()
        return made

    return asyncio.run(write())


def test_a_project_without_conversations_says_so(shell: Shell) -> None:
    ran = shell.run("stats")
    assert (ran.code, ran.out) == (0, "")
    assert "no conversations yet" in ran.err


def test_all_conversations_are_summed_and_one_can_be_named(shell: Shell) -> None:
    first, second = store(
        shell,
        [called(), TREE, said(input=1000, cached=500, output=50), *[read("a.py")] * 3],
        [
            called(),
            said(input=1000, cached=0, output=50),
            Compacted("batch", "x", tokens_before=9, tokens_after=4),
        ],
    )
    ran = shell.run("stats")
    assert ran.code == 0
    lines = [line.split() for line in ran.out.splitlines()]
    assert ["conversations", "2"] in lines
    assert ["input", "tokens", "2.0k"] in lines
    assert ["read_file", "3", "0", "1.5", "0.0", "30"] in lines
    assert ["a.py", "3", "1"] in lines
    assert "25%" in ran.out
    assert "compactions by batch: 1, which made contexts smaller by 5 tokens" in ran.out
    assert "tree: 1234 characters" in ran.out
    one = shell.run("stats", second[:8])
    assert "tree" not in one.out
    assert "read_file" not in one.out
    assert shell.run("stats", "ffff").code != 0
    assert first != second


def test_as_json_everything_is_one_object(shell: Shell) -> None:
    store(shell, [called(), TREE, said(input=1000, cached=500, output=50), read("a.py", hit=True)])
    ran = shell.run("stats", "--json")
    found = json.loads(ran.out)
    assert (found["sessions"], found["steps"], found["cached_share"]) == (1, 1, 0.5)
    assert found["cache"]["hit_rate"] == 1.0
    assert found["tree"]["max_depth"] == 3
    assert found["accesses"] == {"a.py": 1}
    assert found["tools"][0]["name"] == "read_file"


def test_sub_agents_are_counted_only_where_that_is_asked_for(shell: Shell) -> None:
    folder = load(shell.project, env=shell.env).store_folder

    async def write() -> None:
        opened = Store.open(folder, source=SystemSource())
        try:
            with closing(await opened.create()) as parent:
                await parent.append(called(), durable=True)
            with closing(await opened.create(parent=parent.session)) as child:
                await child.append(called(), called(), durable=True)
        finally:
            opened.close()

    asyncio.run(write())
    assert json.loads(shell.run("stats", "--json").out)["steps"] == 1
    assert json.loads(shell.run("stats", "--json", "--all").out)["steps"] == 3


def test_in_chinese_nothing_is_left_in_english(shell: Shell) -> None:
    store(shell, [called(), TREE, said(input=1000, cached=500, output=50)])
    shell.env["LANG"] = "zh_CN.UTF-8"
    ran = shell.run("stats")
    assert "目录树" in ran.out
    assert "tree" not in ran.out
