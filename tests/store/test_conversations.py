"""Operations on conversations: create, list, revise, delete, fork, namespaces, figures."""

from contextlib import closing

import pytest

from croze.store.cache import FoldCache
from croze.store.compose import Draft
from croze.store.conversations import Conversations
from croze.store.store import Store
from croze.types.conversation import Conversation, ConversationMessage, LlmMetadata
from croze.types.errors import (
    ConversationExists,
    ConversationNotFound,
    MessageNotFound,
    SessionBusy,
    StoreError,
)
from croze.types.event import Annotated, ModelSaid, SessionOpened, ToolReturned, UserSaid
from croze.types.model import Cost, Usage
from croze.types.parts import Text, ToolCall

from .conftest import Opener


async def test_a_conversation_is_created_with_its_first_messages(
    conversations: Conversations,
) -> None:
    llm = LlmMetadata("p:m", 3, 4, None, 0.1, 0.2, 5)
    made = await conversations.create(
        name="Mine",
        description="why",
        namespace="ns",
        metadata={"k": 1},
        messages=[
            Draft("system", "be kind", {"m": 1}),
            Draft("user", {"type": "form", "fields": [1, None]}),
            Draft("assistant", ["a", {"text": "b"}], llm_metadata=llm),
            Draft("assistant", "free"),
        ],
    )
    assert await conversations.get(made.id) == made
    assert [(m.role, m.content) for m in made.messages] == [
        ("system", "be kind"),
        ("user", {"type": "form", "fields": [1, None]}),
        ("assistant", ["a", {"text": "b"}]),
        ("assistant", "free"),
    ]
    assert [m.metadata for m in made.messages] == [{"m": 1}, {}, {}, {}]
    assert [m.llm_metadata for m in made.messages] == [None, None, llm, None]
    assert (made.name, made.description, made.namespace) == ("Mine", "why", "ns")
    plain = await conversations.create(session_id="chosen")
    assert (plain.name, plain.namespace, plain.messages) == ("Conversation chosen", "default", ())
    with pytest.raises(ConversationExists):
        await conversations.create(session_id="chosen")


async def test_lists_are_newest_first_paged_and_by_namespace(
    conversations: Conversations, store: Store
) -> None:
    ids = [
        (await conversations.create(namespace="even" if n % 2 == 0 else "odd")).id for n in range(7)
    ]
    (await store.create(parent=ids[0])).close()
    assert [s.id for s in await conversations.list()] == ids[::-1]
    assert [s.id for s in await conversations.list(limit=2, offset=3)] == [ids[3], ids[2]]
    assert [s.id for s in await conversations.list(namespace="odd")] == ids[5::-2]
    assert await conversations.list(namespace="none") == []
    assert len(await conversations.list(include_children=True)) == 8
    await conversations.rename(ids[2], "touched")
    (first, *_) = await conversations.list()
    assert (first.id, first.name) == (ids[2], "touched")


async def test_a_running_session_is_listed_as_it_stands(open_store: Opener) -> None:
    holder, other = open_store(), open_store()
    log = await holder.create(name="live")
    elsewhere = Conversations(other)
    for count in range(3):
        await log.append(UserSaid(str(count), (Text(f"message {count}"),)))
        (summary,) = await elsewhere.list()
        assert (summary.message_count, summary.first) == (count + 1, "message 0")
        assert (await elsewhere.get(log.session)).message_count == count + 1


async def test_messages_are_appended_and_revised(conversations: Conversations) -> None:
    session = (await conversations.create()).id
    first = await conversations.append_message(session[:8], "user", "hello", metadata={"a": 1})
    second = await conversations.append_message(
        session, "assistant", "hi", llm_metadata=LlmMetadata("p:m", 1)
    )
    await conversations.annotate(session, message_id=first, content="hello!", metadata={"b": 2})
    await conversations.annotate(
        session, message_id=second, usage=Usage(10, 20), cost=Cost(0.5, 0.5)
    )
    await conversations.annotate(session, description="greeting", metadata={"c": 3})
    found = await conversations.get(session)
    assert found.messages[0].content == "hello!"
    assert found.messages[0].metadata == {"a": 1, "b": 2}
    assert found.messages[1].llm_metadata == LlmMetadata("p:m", 10, 20, None, 0.5, 0.5)
    assert (found.description, found.metadata, found.cost) == ("greeting", {"c": 3}, 1)
    for wrong in ("nobody", "", "0000"):
        with pytest.raises(MessageNotFound):
            await conversations.annotate(session, message_id=wrong, content="x")
    with pytest.raises(ConversationNotFound):
        await conversations.append_message("nobody", "user", "x")


async def test_a_running_session_takes_no_messages_from_outside_and_is_not_deleted(
    conversations: Conversations, store: Store
) -> None:
    log = await store.create()
    with pytest.raises(SessionBusy):
        await conversations.append_message(log.session, "user", "x")
    with pytest.raises(SessionBusy):
        await conversations.delete(log.session)
    assert len(await conversations.list()) == 1


async def test_deleting_takes_children_index_blobs_and_the_current_mark_with_it(
    conversations: Conversations, store: Store
) -> None:
    only, shared = await store.put_blob(b"only here"), await store.put_blob(b"shared")
    unrelated = await store.put_blob(b"not mentioned by anybody")
    kept = await conversations.create(messages=[Draft("user", f"secretword {shared}")])
    gone = await conversations.create(
        session_id="gone", messages=[Draft("user", f"secretword {only} {shared}")]
    )
    for name, parent in (("child", "gone"), ("grandchild", "child")):
        with closing(await store.create(session_id=name, parent=parent)) as log:
            await log.append(UserSaid("m", (Text("secretword below"),)))
    await conversations.set_current(gone.id, namespace="ns")
    assert len(await conversations.search("secretword", include_children=True)) == 4
    await conversations.delete("gone")
    assert [s.id for s in await conversations.list(include_children=True)] == [kept.id]
    assert [h.session for h in await conversations.search("secretword")] == [kept.id]
    assert await conversations.current("ns") is None
    with pytest.raises(StoreError, match="no blob"):
        await store.blob(only)
    assert await store.blob(shared) == b"shared"
    assert await store.blob(unrelated) == b"not mentioned by anybody"
    assert store.database.connection.execute("SELECT count(*) FROM events").fetchone() == (2,)
    store.database.connection.execute("INSERT INTO search(search) VALUES('integrity-check')")
    with pytest.raises(ConversationNotFound):
        await conversations.get("gone")
    again = await conversations.create(session_id="gone")
    assert again.messages == ()


async def test_deleted_words_are_in_no_file_of_the_store(
    conversations: Conversations, store: Store
) -> None:
    made = await conversations.create(messages=[Draft("user", "xylophonequartz " * 400)])
    await conversations.search("xylophonequartz")
    await conversations.delete(made.id)
    assert store.folder is not None
    files = [path for path in store.folder.rglob("*") if path.is_file()]
    assert len(files) >= 2
    for path in files:
        assert b"xylophonequartz" not in path.read_bytes(), path


def call(name: str) -> ToolCall:
    return ToolCall(name, "t", raw=f"<t>{name}</t>")


async def turn(store: Store) -> str:
    """A session of ten events: two messages, two calls with results, two more messages."""
    with closing(await store.create(name="Source", project="/p", version="1")) as log:
        await log.append(
            UserSaid("u1", (Text("one"),)),
            ModelSaid("a1", 1, "p:m", (Text("doing"), call("c1"), call("c2"))),
            ToolReturned("c1", "a1", "t", True, text="r1"),
            Annotated(name="Renamed"),
            ToolReturned("c2", "a1", "t", True, text="r2"),
            UserSaid("u2", (Text("two"),)),
            ModelSaid("a2", 2, "p:m", (Text("done"),)),
            Annotated(target="u1", content="one, revised"),
            Annotated(target="a2", content="done, revised"),
        )
        return log.session


@pytest.mark.parametrize(
    ("message", "taken", "contents"),
    [
        ("u1", 2, ["one, revised"]),
        ("a1", 6, ["one, revised", "doing<t>c1</t><t>c2</t>", "r1", "r2"]),
        ("c1", 4, ["one, revised", "doing<t>c1</t><t>c2</t>", "r1"]),
        ("u2", 7, ["one, revised", "doing<t>c1</t><t>c2</t>", "r1", "r2", "two"]),
        (None, 10, ["one, revised", "doing<t>c1</t><t>c2</t>", "r1", "r2", "two", "done, revised"]),
    ],
)
async def test_a_fork_has_everything_up_to_the_message_and_its_results(
    conversations: Conversations, store: Store, message: str | None, taken: int, contents: list[str]
) -> None:
    session = await turn(store)
    original = await store.read_stored(session)
    fork = await conversations.fork(session, message)
    assert [m.content for m in fork.messages] == contents
    assert fork.forked_from == (session, taken)
    assert (fork.name, fork.project) == ("Renamed (fork)", "/p")
    stored = await store.read_stored(fork.id)
    assert stored[1:taken] == original[1:taken]
    assert await store.read_stored(session) == original
    assert await conversations.get(fork.id) == fork
    named = await conversations.fork(session, message, name="Other way")
    assert named.name == "Other way"


async def test_a_session_can_be_forked_while_it_runs_but_not_at_what_is_not_there(
    conversations: Conversations, store: Store
) -> None:
    log = await store.create()
    await log.append(UserSaid("u", (Text("go"),)))
    assert (await conversations.fork(log.session)).message_count == 1
    with pytest.raises(MessageNotFound):
        await conversations.fork(log.session, "nothing")


async def test_each_namespace_has_its_own_current_conversation(
    conversations: Conversations,
) -> None:
    a = await conversations.create(namespace="a")
    b = await conversations.create(namespace="b")
    plain = await conversations.create()
    assert await conversations.current() is None
    await conversations.set_current(a.id, namespace="a")
    await conversations.set_current(b.id, namespace="a")
    await conversations.set_current(plain.id[:8])
    assert await conversations.current("a") == b.id
    assert await conversations.current() == plain.id
    assert await conversations.current("b") is None
    assert await conversations.namespaces() == {"a": b.id, "b": None, "default": plain.id}
    with pytest.raises(ConversationNotFound):
        await conversations.set_current("nobody")


def reply(cost: float | None) -> ModelSaid:
    return ModelSaid(
        "a",
        1,
        "p:m",
        (Text("x"),),
        usage=Usage(10, 5, 2),
        cost=Cost() if cost is None else Cost(cost, 0.0),
    )


async def test_a_parents_cost_includes_its_descendants_under_its_own_name(
    conversations: Conversations, store: Store
) -> None:
    parent = await store.create(session_id="parent")
    await parent.append(reply(1.0), reply(None))
    child = await store.create(session_id="child", parent="parent")
    await child.append(reply(0.5))
    grandchild = await store.create(session_id="grandchild", parent="child")
    await grandchild.append(reply(0.25))
    await store.create(session_id="free", parent="parent")
    (listed,) = await conversations.list()
    got = await conversations.get("parent")
    for found in (listed, got):
        assert (found.cost, found.children_cost, found.unpriced) == (1.75, 0.75, 1)
        assert found.input_tokens == 20
    assert (await conversations.get("grandchild")).children_cost is None
    figures = await conversations.stats()
    assert (figures.conversations, figures.cost, figures.unpriced) == (1, 1.75, 1)
    assert (await conversations.stats(include_children=True)).conversations == 4


async def test_statistics_count_what_there_is_and_what_was_done(
    conversations: Conversations, store: Store
) -> None:
    session = await turn(store)
    made = await conversations.create(namespace="other", messages=[Draft("user", "x")])
    for _ in range(3):
        await conversations.get(session)
    await conversations.get(made.id)
    figures = await conversations.stats()
    assert (figures.conversations, figures.messages, figures.namespaces) == (2, 7, 2)
    assert figures.tools == {"t": 2}
    assert (figures.created, figures.loaded) == (1, 2)
    assert (figures.cache_hits, figures.cache_misses) == (2, 2)
    assert figures.bytes > 5_000
    assert figures.cost is None


async def test_what_another_process_appends_is_never_hidden_by_the_cache(
    open_store: Opener,
) -> None:
    first, second = Conversations(open_store()), Conversations(open_store())
    session = (await first.create()).id
    for count in range(4):
        assert (await second.get(session)).message_count == count
        await first.append_message(session, "user", str(count))


def folded(name: str, messages: int, last_seq: int = 1) -> Conversation:
    message = ConversationMessage("m", "user", "x", 0)
    return Conversation(id=name, name=name, last_seq=last_seq, messages=(message,) * messages)


def test_the_cache_keeps_so_many_conversations_and_ten_times_as_many_messages() -> None:
    cache = FoldCache(3, 60.0, lambda: 0.0)
    for name in "abcd":
        cache.put(folded(name, 1))
    assert [cache.get(name, 1) is not None for name in "abcd"] == [False, True, True, True]
    cache.put(folded("long", 29))
    assert [cache.get(name, 1) is not None for name in ("c", "d", "long")] == [False, True, True]
    cache.put(folded("longer", 100))
    assert [cache.get(name, 1) is not None for name in ("long", "longer")] == [False, True]


def test_the_cache_forgets_what_was_long_not_used_and_older_folds() -> None:
    now = 0.0
    cache = FoldCache(10, 60.0, lambda: now)
    cache.put(folded("a", 1))
    cache.put(folded("b", 1))
    now = 50.0
    assert cache.get("a", 1) is not None
    now = 100.0
    assert cache.get("a", 1) is not None
    assert cache.get("b", 1) is None
    cache.put(folded("a", 2, last_seq=2))
    assert cache.get("a", 1) is None
    assert cache.get("a", 2) is not None
    assert (cache.hits, cache.misses) == (3, 2)


async def test_the_opening_event_of_a_fork_names_where_it_comes_from(
    conversations: Conversations, store: Store
) -> None:
    session = await turn(store)
    fork = await conversations.fork(session, "u1")
    first = (await store.read(fork.id))[0].body
    assert isinstance(first, SessionOpened)
    assert first.forked_from == (session, 2)
    assert first.version == "1"
