"""Random sessions as the loop writes them, and random compactions of them."""

from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from croze.text.tokens import estimate
from croze.types.event import (
    Annotated,
    Body,
    Compacted,
    Event,
    FactAdded,
    FilesChanged,
    MessagesMarked,
    ModelCalled,
    ModelSaid,
    Notice,
    Stopped,
    TodoItem,
    TodoSet,
    ToolReturned,
    ToolStarted,
    Undone,
    UserSaid,
)
from croze.types.parts import Part, Text, Thinking, ToolCall
from croze.types.tool import Access, FileChange

TOOLS = ("read_file", "list_files", "search_files", "execute_command", "replace_in_file")
PATHS = ("a.py", "src/b.py", "src/c.py")


def called(step: int, *, prefill: bool = False, purpose: str = "main") -> ModelCalled:
    return ModelCalled(
        step=step, model="m", head="h", history=0, body="b", rolling="r", encoder=1,
        tokens=1, size=1, prefill=prefill, purpose=purpose,
    )  # fmt: skip


def logged(bodies: list[Body], start: int = 1) -> list[Event]:
    """The bodies as a log; a request holds all that stands before it."""
    out = []
    for seq, body in enumerate(bodies, start):
        if isinstance(body, ModelCalled):
            body = replace(body, history=seq - 1)
        out.append(Event("s", seq, seq * 1_000_000, body))
    return out


class Writer:
    """Draws a session body by body."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.bodies: list[Body] = []
        self.count = 0
        self.step = 0
        self.turns: list[int] = []

    def fresh(self) -> str:
        self.count += 1
        return f"{self.count:08x}-id"

    def text(self, most: int = 60) -> str:
        return self.draw(st.text("ab é漢<>&\n", min_size=1, max_size=most))

    def user(self) -> None:
        text = self.text()
        self.bodies.append(
            UserSaid(message_id=self.fresh(), parts=(Text(text=text),), tokens=estimate(text))
        )

    def fact(self, key: str, **more: Any) -> None:
        text = self.text()
        self.bodies.append(
            FactAdded(key=key, message_id=self.fresh(), text=text, tokens=estimate(text), **more)
        )

    def call(self) -> ToolCall:
        draw = self.draw
        name = draw(st.sampled_from(TOOLS))
        path = draw(st.sampled_from(PATHS))
        args: dict[str, Any] = {"path": path}
        if name == "execute_command":
            args = {"command": f"cat {path}"}
        if name == "replace_in_file":
            args["diff"] = "x" * draw(st.sampled_from([10, 700]))
        tags = "\n".join(f"<{k}>{v}</{k}>" for k, v in args.items())
        raw = f"<{name}>\n{tags}\n</{name}>" if draw(st.booleans()) else ""
        return ToolCall(id=self.fresh()[:8] + "c", name=name, args=args, raw=raw)

    def result(self, call: ToolCall) -> None:
        size = self.draw(st.sampled_from([3, 20, 700, 2500]))
        text = (f"{call.args.get('path', '')} line\n" * size)[:size]
        digest = self.draw(st.sampled_from(["", "a digest"]))
        self.bodies.append(ToolStarted(call_id=call.id, name=call.name, access=Access(read=True)))
        if self.draw(st.integers(0, 3)) == 0:
            change = FileChange(path="a.py", kind="modified", before="1", after="2")
            self.bodies.append(FilesChanged(call_id=call.id, changes=(change,)))
        self.bodies.append(
            ToolReturned(
                call_id=call.id, message_id=self.fresh(), name=call.name, text=text,
                ok=self.draw(st.integers(0, 4)) > 0, message="m", digest=digest,
                tokens=estimate(text),
            )
        )  # fmt: skip

    def said(self, parts: tuple[Part, ...], **more: Any) -> str:
        message_id = self.fresh()
        tokens = sum(
            estimate(p.text) if isinstance(p, Text) else estimate(p.raw) + 8
            for p in parts
            if isinstance(p, Text | ToolCall)
        )
        self.bodies.append(
            ModelSaid(message_id, step=self.step, model="m", parts=parts, tokens=tokens, **more)
        )
        return message_id

    def one_step(self) -> None:
        draw = self.draw
        kind = draw(st.integers(0, 9))
        if kind == 0:
            self.fact("rules", reply=draw(st.sampled_from(["", "Noted."])))
        elif kind == 1:
            self.fact("todo", layer="current", place="tail")
        elif kind == 2:
            self.fact("tree", layer="current")
        self.step += 1
        self.bodies.append(called(self.step))
        if draw(st.integers(0, 9)) == 0:
            self.user()
        calls = [self.call() for _ in range(draw(st.integers(0, 3)))]
        thinking = (Thinking(text="hm", opaque="{}", model="m"),) if draw(st.booleans()) else ()
        parts = (*thinking, Text(text=self.text()), *calls)
        continued = draw(st.integers(0, 9))
        if continued == 0 and not calls:
            first = self.said(parts, finish="length")
            self.bodies.append(called(self.step, prefill=True))
            self.said((*parts, Text(text="more")), continues=first, joined=True)
        elif continued == 1 and not calls:
            first = self.said(parts, finish="length")
            self.fact("continue", layer="current")
            self.bodies.append(called(self.step))
            self.said((Text(text="the rest"),), continues=first)
        else:
            self.said(parts)
        for call in calls:
            if draw(st.integers(0, 9)) == 0:
                self.user()
            self.result(call)
        self._aside()

    def _aside(self) -> None:
        draw = self.draw
        kind = draw(st.integers(0, 12))
        if kind == 0:
            self.bodies.append(TodoSet(items=(TodoItem(id=1, text="x"),)))
        elif kind == 1:
            self.bodies.append(Notice(level="info", code="x", text="y"))
        elif kind == 2:
            self.bodies.append(Annotated(name="n"))
        elif kind == 3:
            ids = self.ids()
            if ids:
                self.bodies.append(MessagesMarked(ids=(draw(st.sampled_from(ids)),)))
        elif kind == 4:
            self.bodies.append(called(self.step, purpose="edit"))

    def ids(self) -> list[str]:
        kinds = (UserSaid, ToolReturned, ModelSaid, FactAdded)
        return [b.message_id for b in self.bodies if isinstance(b, kinds)]

    def turn(self, steps: int = 4) -> None:
        self.turns.append(len(self.bodies) + 1)
        self.user()
        for _ in range(self.draw(st.integers(1, steps))):
            self.one_step()
        self.bodies.append(Stopped(reason="done"))

    def undo(self) -> None:
        """Take back the last turn, as `plan_undo` does: hidden up to now."""
        if len(self.turns) > 1:
            first = self.turns.pop()
            earlier = [b.hidden for b in self.bodies if isinstance(b, Undone)]
            spans = tuple(s for s in (earlier[-1] if earlier else ()) if s[0] < first)
            self.bodies.append(
                Undone(
                    undo_id=self.fresh(), kind="undo", hidden=(*spans, (first, len(self.bodies)))
                )
            )

    def compaction(self) -> Compacted:
        """Any compaction that a policy could come to, and some that none should."""
        draw = self.draw
        some = st.lists(st.sampled_from(self.ids()), max_size=4, unique=True)
        results = [b.call_id for b in self.bodies if isinstance(b, ToolReturned)]
        calls = [
            p
            for b in self.bodies
            if isinstance(b, ModelSaid)
            for p in b.parts
            if isinstance(p, ToolCall)
        ]
        chosen = st.lists(st.sampled_from(results), max_size=4) if results else st.just([])
        users = {b.message_id for b in self.bodies if isinstance(b, UserSaid)}
        starts = [
            i for i, b in enumerate(self.bodies) if isinstance(b, ModelCalled) and not b.prefill
        ]
        until = draw(st.sampled_from([0, 0, *starts])) if starts else 0
        cut = {}
        if calls and draw(st.booleans()):
            call = draw(st.sampled_from(calls))
            cut[call.id] = dict.fromkeys(call.args, "[cut]")
        return Compacted(
            policy="batch",
            reason="test",
            replaced=dict.fromkeys(draw(chosen), "[cleared]"),
            digested=tuple(draw(chosen)),
            cut=cut,
            hidden=tuple(i for i in draw(some) if i not in users),
            until=until,
            pinned=tuple(draw(some)),
            summary="It was long." if until else "",
            receipt="[Receipt]" if until else "",
        )


@st.composite
def sessions(draw: st.DrawFn, *, compactions: bool = False, steps: int = 4) -> list[Event]:
    """A whole session: turns of steps, undone turns, and compactions where they are wanted."""
    writer = Writer(draw)
    writer.fact("rules", reply="Noted.")
    writer.fact("environment", layer="current")
    for _ in range(draw(st.integers(1, 4))):
        writer.turn(steps)
        if draw(st.integers(0, 5)) == 0:
            writer.undo()
        if compactions and draw(st.booleans()):
            writer.bodies.append(writer.compaction())
    return logged(writer.bodies)
