"""Events as rows: every type comes back equal, whatever is in it, plain and compressed."""

import sqlite3
from contextlib import closing
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from croze.store import rows
from croze.store.schema import migrate
from croze.types.event import Body, Event, Unknown, UserSaid, decode_body
from croze.types.parts import CallResult, Image, Text, Thinking, ToolCall

from .conftest import Opener

TYPES: list[type[Any]] = [kind for kind in Body.__args__ if kind is not Unknown]  # type: ignore[attr-defined]

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a field's type."""
    info = msgspec.inspect.type_info(kind) if not isinstance(kind, msgspec.inspect.Type) else kind
    match info:
        case msgspec.inspect.AnyType():
            return json_values
        case msgspec.inspect.NoneType():
            return st.none()
        case msgspec.inspect.BoolType():
            return st.booleans()
        case msgspec.inspect.IntType():
            return st.integers(-(2**62), 2**62)
        case msgspec.inspect.FloatType():
            return st.floats(allow_nan=False, allow_infinity=False)
        case msgspec.inspect.StrType():
            return texts
        case msgspec.inspect.LiteralType(values=choices):
            return st.sampled_from(choices)
        case msgspec.inspect.UnionType(types=types):
            return st.one_of([values(each) for each in types])
        case msgspec.inspect.VarTupleType(item_type=item):
            return st.lists(values(item), max_size=3).map(tuple)
        case msgspec.inspect.TupleType(item_types=items):
            return st.tuples(*(values(item) for item in items))
        case msgspec.inspect.ListType(item_type=item):
            return st.lists(values(item), max_size=3)
        case msgspec.inspect.DictType(value_type=value):
            return st.dictionaries(texts, values(value), max_size=3)
        case msgspec.inspect.StructType(cls=cls, fields=fields):
            return st.builds(cls, **{field.name: values(field.type) for field in fields})
    raise AssertionError(f"a field of type {info} has no strategy")


bodies = st.sampled_from(TYPES).flatmap(values) | st.builds(
    Unknown, type=st.just("FromTheFuture"), v=st.integers(1, 9), raw=texts
)


def stored(body: Body, *, compress: bool) -> Event:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, "memory")
        kind, v, text = rows.encode(body, compress=compress)
        connection.execute(
            "INSERT INTO events(id, at, type, v, body) VALUES(?, 7, ?, ?, ?)",
            (rows.base_of(3) + 1, kind, v, text),
        )
        (row,) = rows.rows_after(connection, 3, 0)
        return rows.decode("s", row)


@given(body=bodies, compress=st.booleans())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_body_comes_back_equal(body: Body, compress: bool) -> None:
    event = stored(body, compress=compress)
    assert event.body == body
    assert (event.session, event.seq, event.at) == ("s", 1, 7)


@pytest.mark.parametrize("kind", TYPES)
@given(data=st.data())
@settings(max_examples=5, deadline=None)
def test_each_type_of_event_is_known_by_its_name(kind: type[Any], data: st.DataObject) -> None:
    body = data.draw(values(kind))
    assert type(stored(body, compress=False).body) is kind


def test_large_bodies_are_deflated_only_where_asked_and_where_it_saves() -> None:
    long = UserSaid(message_id="m", parts=(Text("again " * 1_000),))
    assert isinstance(rows.encode(long, compress=False)[2], str)
    packed = rows.encode(long, compress=True)[2]
    assert isinstance(packed, bytes)
    assert len(packed) < 200
    assert isinstance(rows.encode(UserSaid("m", (Text("short"),)), compress=True)[2], str)


async def test_a_compressed_session_is_read_with_and_without_the_setting(
    open_store: Opener,
) -> None:
    body = UserSaid("m", (Text("again and " * 1_000),))
    packing = open_store(enable_compression=True)
    log = await packing.create(session_id="s")
    await log.append(body)
    digest = await packing.put_blob(b"blob " * 1_000)
    log.close()
    plain = open_store()
    assert (await plain.read("s"))[1].body == body
    assert await plain.blob(digest) == b"blob " * 1_000
    (size,) = plain.database.connection.execute("SELECT length(data) FROM blobs").fetchone()
    assert size < 200


async def test_names_that_are_no_utf_8_do_not_stop_a_session(open_store: Opener) -> None:
    store = open_store()
    log = await store.create(name="bad \udcff name", metadata={"path\udc80": ["\ud83d\ude00"]})
    odd = UserSaid("m", (Text("a\udc80b"), Thinking("\udcfe"), ToolCall("c", "t", {"p": "\udc01"})))
    picture = UserSaid("n", (Image("h", "image/png"), CallResult("c", "t", True)))
    event, _ = await log.append(odd, picture)
    assert isinstance(event.body, UserSaid)
    assert event.body.parts[0] == Text("a\ufffdb")
    assert log.events == await store.read(log.session)


def test_an_unknown_version_is_shown_and_kept_as_it_is() -> None:
    raw = '{"text": "from a later version",  "odd spacing": 1}'
    event = stored(Unknown(type="UserSaid", v=99, raw=raw), compress=False)
    assert event.body == Unknown(type="UserSaid", v=99, raw=raw)
    assert event.v == 99
    assert decode_body("UserSaid", 99, raw.encode()) == event.body
