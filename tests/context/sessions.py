"""Sessions for tests of what looks at a log: made by hand, and at random."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from croze.context.check import check_context
from croze.context.ledger import Entry, ledger_of
from croze.context.policies import Decision, Policy, State, Zone
from croze.context.project import project
from croze.context.receipt import receipt
from croze.context.summary import fallback
from croze.text.tokens import estimate
from croze.types.context import Budget, Message
from croze.types.event import (
    Body,
    Compacted,
    Event,
    FactAdded,
    FilesChanged,
    MessagesMarked,
    ModelCalled,
    ModelSaid,
    TodoItem,
    TodoSet,
    ToolReturned,
    ToolStarted,
    Undone,
    UserSaid,
)
from croze.types.model import Prices
from croze.types.parts import CallResult, Text, ToolCall
from croze.types.tool import Access, FileChange


class Session:
    """Writes a log as the loop does; every method appends and gives back the id of what it wrote."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.step = 0
        self._ids = 0

    @property
    def last(self) -> int:
        return len(self.events)

    def add(self, body: Body) -> int:
        self.events.append(Event("s", self.last + 1, self.last + 1, body))
        return self.last

    def new_id(self) -> str:
        self._ids += 1
        return f"{self._ids:08x}-0000"

    def user(self, text: str) -> str:
        message_id = self.new_id()
        self.add(UserSaid(message_id, (Text(text),), tokens=estimate(text)))
        return message_id

    def fact(self, key: str, text: str, layer: Any = "documentation") -> str:
        message_id = self.new_id()
        reply = "Understood." if layer == "documentation" else ""
        tokens = estimate(text)
        self.add(FactAdded(key, message_id, text, layer=layer, reply=reply, tokens=tokens))
        return message_id

    def asked(self) -> None:
        self.step += 1
        self.add(
            ModelCalled(
                step=self.step,
                model="m",
                head="h",
                history=self.last,
                body="b",
                rolling="r",
                encoder=1,
                tokens=1,
                size=1,
            )
        )

    def said(self, text: str, *calls: tuple[str, dict[str, Any]]) -> tuple[str, list[str]]:
        message_id = self.new_id()
        made = [
            ToolCall(id=f"call{self._ids:03d}{n:02d}", name=name, args=args)
            for n, (name, args) in enumerate(calls)
        ]
        parts = ((Text(text),) if text else ()) + tuple(made)
        tokens = estimate(text) + sum(estimate(str(call.args)) for call in made)
        self.add(ModelSaid(message_id, self.step, "m", parts, tokens=tokens))
        return message_id, [call.id for call in made]

    def returned(self, call_id: str, name: str, text: str, **more: Any) -> str:
        message_id = self.new_id()
        self.add(ToolStarted(call_id, name, Access(read=True)))
        self.add(
            ToolReturned(
                call_id,
                message_id,
                name,
                more.pop("ok", True),
                text=text,
                tokens=estimate(text),
                **more,
            )
        )
        return message_id

    def call(self, name: str, args: dict[str, Any], text: str, **more: Any) -> str:
        """A whole step with one call."""
        self.asked()
        _, (call_id,) = self.said("", (name, args))
        return self.returned(call_id, name, text, **more)

    def run(self, command: str, text: str, code: int = 0) -> str:
        return self.call(
            "execute_command",
            {"command": command},
            text,
            ok=code == 0,
            message=f"Exit code {code}.",
            data={"exit_code": code},
        )

    def edit(self, path: str, added: int = 3, removed: int = 1) -> str:
        self.asked()
        _, (call_id,) = self.said("", ("replace_in_file", {"path": path, "diff": "…"}))
        change = FileChange(path, "modified", added=added, removed=removed)
        self.add(FilesChanged(call_id, (change,)))
        return self.returned(call_id, "replace_in_file", "", message=f"Edited {path}.")

    def todo(self, *items: tuple[str, Any]) -> None:
        self.add(
            TodoSet(tuple(TodoItem(n, text, status) for n, (text, status) in enumerate(items, 1)))
        )

    def mark(self, *ids: str) -> None:
        self.add(MessagesMarked(ids))

    def undo(self, first: int, last: int, calls: Sequence[str] = ()) -> None:
        self.add(Undone("undo-1", "undo", hidden=((first, last),), calls=tuple(calls)))


WORDS = st.text(
    st.characters(blacklist_categories=["Cs"]) | st.sampled_from("<>[]`*-;:\n/"), max_size=60
)
TOOLS = st.sampled_from(
    ["read_file", "list_files", "search_files", "execute_command", "write_to_file", "Bash", "odd"]
)


@st.composite
def sessions(draw: st.DrawFn, *, longest: int = 12_000, undo: bool = True) -> Session:
    """A random session: turns, facts, parallel calls, results of all sizes with and without digests,
    marks, todo lists, an undo."""
    session = Session()
    if draw(st.booleans()):
        session.fact("rules", draw(WORDS) * draw(st.sampled_from([1, 20])))
    marked: list[str] = []
    for _turn in range(draw(st.integers(1, 3))):
        session.user(draw(WORDS))
        for _step in range(draw(st.integers(0, 7))):
            session.asked()
            calls = [(draw(TOOLS), _args(draw, longest)) for _ in range(draw(st.integers(0, 3)))]
            _, ids = session.said(draw(WORDS), *calls)
            for call_id, (name, args) in zip(ids, calls, strict=True):
                size = draw(st.sampled_from([0, 3, 40, 700, 4_000, longest]))
                text = (f"{args.get('path', 'x')} line\n" * (size // 8 + 1))[:size]
                digest = draw(st.sampled_from(["", "a digest of it", text[:100]]))
                result = session.returned(
                    call_id, name, text, ok=draw(st.integers(0, 4)) > 0, digest=digest
                )
                if draw(st.integers(0, 8)) == 0:
                    marked.append(result)
                    session.mark(*marked)
            if draw(st.integers(0, 6)) == 0:
                session.fact("todo", draw(WORDS), layer="current")
            if draw(st.integers(0, 6)) == 0:
                session.todo((draw(WORDS), "pending"), ("done", "completed"))
    steps = [event.seq for event in session.events if isinstance(event.body, ModelCalled)]
    if undo and draw(st.integers(0, 5)) == 0 and steps:
        session.undo(draw(st.sampled_from(steps)), session.last)
        session.user("after the undo")
    return session


def _args(draw: st.DrawFn, longest: int) -> dict[str, Any]:
    args: dict[str, Any] = {"path": draw(st.sampled_from(["a.py", "src/b.py", "docs/c.md"]))}
    size = draw(st.sampled_from([0, 20, 600, longest]))
    if size:
        args[draw(st.sampled_from(["content", "diff", "command", "other"]))] = "word " * (size // 5)
    return args


def replayed(session: Session, body: Body) -> Session:
    """A copy of the session with one more event."""
    copy = Session()
    copy.events = [replace(event) for event in session.events]
    copy.step, copy._ids = session.step, session._ids
    copy.add(body)
    return copy


def state_of(
    session: Session, *, zone: int | None = None, head: int = 0, forced: bool = False
) -> State:
    """What a policy sees of the session, with estimates for the provider's counts."""
    ledger = ledger_of(session.events)
    return State(
        ledger=ledger,
        tokens=head + ledger.tokens,
        head=head,
        scale=1.0,
        budget=Budget(window=1_000_000, reserve=0),
        zone=Zone(zone=zone),
        prices=Prices(),
        forced=forced,
    )


def written(session: Session, decision: Decision) -> Compacted:
    """The decision's event, its summary written by plain code where it asks for one."""
    event = decision.event
    if not decision.summarise:
        return event
    earlier = ""
    for old in ledger_of(session.events).compactions:
        assert isinstance(old.body, Compacted)
        earlier = old.body.summary or earlier
    return replace(
        event,
        summary=fallback(session.events, event.until, earlier),
        receipt=receipt(session.events, event.until),
    )


def standing(session: Session) -> tuple[Message, ...]:
    return project(session.events, "head", (), ()).messages


def sound(session: Session) -> None:
    """Nothing is parted, nothing is out of order, as far as the session has been asked."""
    if session.events and isinstance(session.events[-1].body, (UserSaid, ToolReturned, Compacted)):
        context = project(session.events, "head", (), ())
        found = check_context(context, Budget(window=10_000_000, reserve=0))
        assert [check for check in found if check.level == "error" and check.code == "pairs"] == []
    messages = standing(session)
    calls = [part.id for m in messages for part in m.parts if isinstance(part, ToolCall)]
    results = [part.call_id for m in messages for part in m.parts if isinstance(part, CallResult)]
    assert calls == results


class Counted(list[Entry]):
    """A ledger's entries that count how many of them are looked at."""

    looked_at = 0

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        self.looked_at += len(found) if isinstance(index, slice) else 1
        return found

    def __iter__(self) -> Any:
        self.looked_at += len(self)
        return super().__iter__()

    def __reversed__(self) -> Any:
        for index in range(len(self) - 1, -1, -1):
            yield self[index]


def looked_at(state: State, policy: Policy) -> int:
    """How many entries a decision looks at."""
    entries = Counted(state.ledger.entries)
    state.ledger.entries = entries
    policy(state)
    return entries.looked_at
