"""Full-text search: what is found, in which scripts, and that the index follows the log."""

from contextlib import closing

import pytest

from croze.store import search
from croze.store.compose import Draft
from croze.store.conversations import Conversations
from croze.store.store import Store
from croze.types.event import FactAdded, ModelSaid, ToolReturned, UserSaid
from croze.types.parts import Text, Thinking, ToolCall

from .conftest import Opener


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("parser", True),
        ("PARS", True),
        ("parser crash", True),
        ("crash parser", True),
        ("arser", False),
        ("parser elephant", False),
        ("handle_request", True),
        ("request", True),
        ("src/http/server.py", True),
        ("解析", True),
        ("析器", True),
        ("器", True),
        ("解器", False),
        ("解析器 parser", True),
        ("ドメイン", True),
        ("メイ", True),
        ("Grosse", False),
        ("Größe", True),
        ("grosz", False),
        ('"parser" OR (', False),
        ('"parser"', True),
        ("NEAR(parser", False),
        ("crash*", True),
        ("-crash", True),
        ("", False),
        ("   ", False),
        ('" * ( ) :', False),
        ("\0", False),
    ],
)
async def test_words_and_beginnings_of_words_are_found_in_any_script(
    conversations: Conversations, query: str, found: bool
) -> None:
    await conversations.create(
        name="n",
        messages=[
            Draft(
                "user",
                "The parser: crash in handle_request of src/http/server.py, "
                "修复解析器的错误, ドメイン名, Größe",
            )
        ],
    )
    hits = await conversations.search(query)
    assert bool(hits) == found, hits


async def test_hits_say_where_they_are_with_the_text_around(
    conversations: Conversations, store: Store
) -> None:
    with closing(await store.create(name="About the zebra")) as log:
        await log.append(
            UserSaid("u", (Text("word " * 50 + "the zebra\nran " + "word " * 50),)),
            ModelSaid(
                "a",
                1,
                "p:m",
                (Thinking("zebra"), Text("no"), ToolCall("c", "t", raw="<t>zebra</t>")),
            ),
            ToolReturned("c", "a", "t", True, message="ok", text="a zebra"),
            FactAdded(key="k", message_id="f", text="zebra zebra zebra"),
        )
    hits = await conversations.search("zebra")
    assert {(h.seq, h.role, h.message_id) for h in hits} == {
        (1, "session", ""),
        (2, "user", "u"),
        (3, "assistant", "a"),
        (4, "tool", "c"),
    }
    assert {(h.session, h.name) for h in hits} == {(log.session, "About the zebra")}
    snippet = next(h.snippet for h in hits if h.seq == 2)
    assert snippet.startswith("…")
    assert snippet.endswith("…")
    assert "the zebra ran word" in snippet
    assert len(await conversations.search("zebra", limit=2)) == 2


async def test_sub_agents_are_found_only_where_asked_for(
    conversations: Conversations, store: Store
) -> None:
    parent = await store.create()
    child = await store.create(parent=parent.session)
    await child.append(UserSaid("u", (Text("deep thought"),)))
    assert await conversations.search("thought") == []
    (hit,) = await conversations.search("thought", include_children=True)
    assert hit.session == child.session


async def test_the_index_follows_a_running_session_in_batches(
    open_store: Opener, conversations: Conversations
) -> None:
    log = await open_store().create()
    total = 2 * search.BATCH + 17
    for start in range(0, total, 31):
        await log.append(
            *(
                UserSaid(f"{n}", (Text(f"alpha number{n}"),))
                for n in range(start, min(start + 31, total))
            )
        )
    assert len(await conversations.search("alpha", limit=10_000)) == total
    assert [h.message_id for h in await conversations.search("number416")] == ["416"]
    await log.append(UserSaid("late", (Text("omega"),)))
    assert [h.message_id for h in await conversations.search("omega")] == ["late"]
    assert len(await conversations.search("alpha", limit=10_000)) == total


async def test_closing_a_store_indexes_a_bounded_part(open_store: Opener) -> None:
    store = open_store()
    with closing(await store.create(session_id="s")) as log:
        await log.append(*(UserSaid(f"{n}", (Text("beta"),)) for n in range(search.AT_CLOSE * 2)))
    store.close()
    again = open_store()
    (indexed,) = again.database.connection.execute("SELECT indexed FROM sessions").fetchone()
    assert search.AT_CLOSE <= indexed < search.AT_CLOSE + search.BATCH
    hits = await Conversations(again).search("beta", limit=10_000)
    assert len(hits) == search.AT_CLOSE * 2


async def test_a_revised_text_is_found_with_its_message(conversations: Conversations) -> None:
    made = await conversations.create(messages=[Draft("user", "before")])
    message = made.messages[0].message_id
    await conversations.annotate(made.id, message_id=message, content="afterwards")
    await conversations.rename(made.id, "Entirely new name")
    (hit,) = await conversations.search("afterwards")
    assert (hit.message_id, hit.name) == (message, "Entirely new name")
    (hit,) = await conversations.search("entirely")
    assert hit.role == "session"
