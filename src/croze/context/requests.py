"""The requests that a log records, each with the context that it was made of and the bytes that were sent."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from msgspec import Struct

from croze.context.head import Head
from croze.context.images import Images
from croze.context.ledger import Ledger
from croze.context.project import Projection
from croze.dialect.base import Dialect
from croze.llm.model import ENCODER_VERSION, Model
from croze.types.context import Context, Message
from croze.types.errors import CrozeError, UsageError
from croze.types.event import Event, HeadSet, ModelCalled, ModelSaid
from croze.types.model import Prices, Usage

Opener = Callable[[HeadSet], tuple[Dialect, Model]]
"""The protocol and the wire that a recorded head names; raises `CrozeError` where there is none."""

NO_PRICES = Prices()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One recorded request of the conversation.

    `part` counts the requests of its step from 1: a continued reply has several. `head` is the head that
    it was sent with, None where the log has none. `said` is the reply's event, None where none came.
    """

    index: int
    step: int
    part: int
    event: Event
    body: ModelCalled
    head: HeadSet | None
    said: Event | None = None

    @property
    def reply(self) -> ModelSaid | None:
        return self.said.body if self.said and isinstance(self.said.body, ModelSaid) else None

    @property
    def usage(self) -> Usage:
        return self.reply.usage if self.reply is not None else Usage()

    @property
    def prices(self) -> Prices:
        return self.head.model.prices if self.head is not None else NO_PRICES

    @property
    def tokens(self) -> int:
        """The request's size as the provider counted it, else as it was estimated."""
        return self.usage.input or self.body.tokens

    @property
    def label(self) -> str:
        """How the request is named: its step, and its place in there from the second on."""
        return str(self.step) if self.part == 1 else f"{self.step}.{self.part}"


def calls_of(events: Sequence[Event]) -> list[Call]:
    """The conversation's requests, the oldest first; questions that were asked aside are none."""
    calls: list[Call] = []
    head: HeadSet | None = None
    for event in events:
        match event.body:
            case HeadSet():
                head = event.body
            case ModelCalled(purpose="main") as body:
                last = calls[-1] if calls else None
                part = last.part + 1 if last is not None and last.step == body.step else 1
                known = head if head is not None and head.head == body.head else None
                calls.append(
                    Call(
                        index=len(calls), step=body.step, part=part, event=event, body=body,
                        head=known,
                    )
                )  # fmt: skip
            case ModelSaid(purpose="main") if calls and calls[-1].said is None:
                last = calls[-1]
                calls[-1] = Call(
                    index=last.index, step=last.step, part=last.part, event=last.event,
                    body=last.body, head=last.head, said=event,
                )  # fmt: skip
            case _:
                pass
    return calls


def find_call(calls: Sequence[Call], wanted: str | None) -> Call:
    """The request that `wanted` names: a step (its last request) or `step.part`; None is the newest.

    Raises UsageError where there is none."""
    if not calls:
        raise UsageError(
            "No request of this conversation is recorded: it was imported, or nothing was asked yet.",
            hint="`croze session show` prints what was said.",
            code="no_requests",
        )
    if wanted is None:
        return calls[-1]
    step, _dot, part = wanted.partition(".")
    at = int(step) if step.isdecimal() else -1
    place = int(part) if part.isdecimal() else 0
    found = [call for call in calls if call.step == at]
    if found and not _dot:
        return found[-1]
    if 0 < place <= len(found):
        return found[place - 1]
    raise UsageError(
        f"There is no step {wanted}; this conversation has the steps {calls[0].step} to {calls[-1].step}.",
        hint="Name one of them, or leave --turn out for the last.",
        code="no_step",
        step=wanted,
        first=calls[0].step,
        last=calls[-1].step,
    )


@dataclass(slots=True)
class Moment:
    """A request as it was about to be sent: the folds of everything before it. They go on changing with
    the next one; `context` makes a value of them."""

    call: Call
    projection: Projection
    ledger: Ledger

    def context(self, head: Head | None) -> Context:
        """What the model saw; without a head its text and tools are missing."""
        system, core, sections = (
            ("", (), ()) if head is None else (head.system, head.core, head.sections)
        )
        return self.projection.context(system, core, sections, prefill=self.call.body.prefill)


def moments(
    events: Iterable[Event], calls: Sequence[Call], *, until: Call | None = None
) -> Iterator[Moment]:
    """The requests in their order, each before its own event is folded in; `until` is the last."""
    cuts: dict[int, list[Call]] = {}
    for call in calls if until is None else calls[: until.index + 1]:
        cuts.setdefault(call.body.history, []).append(call)
    projection, ledger = Projection(), Ledger()
    for event in events:
        projection.feed(event)
        ledger.feed(event)
        for call in cuts.pop(event.seq, ()):
            yield Moment(call, projection, ledger)
        if not cuts:
            return


def moment_of(events: Sequence[Event], call: Call) -> Moment:
    """One request with the folds of everything before it."""
    projection, ledger = Projection(), Ledger()
    for event in events:
        if event.seq > call.body.history:
            break
        projection.feed(event)
        ledger.feed(event)
    return Moment(call, projection, ledger)


Why = Literal["", "encoder", "head", "wire", "bytes"]


class Exactness(Struct, frozen=True, omit_defaults=True):
    """Whether the rebuilt bytes are those that were sent, held by their SHA-256.

    `why` says what stood against it: another `encoder` made them than this version ships, the `head` is
    no longer stored, its `wire` can't be opened here, or the `bytes` came out differently.
    """

    exact: bool
    size: int
    sha256: str
    why: Why = ""
    text: str = ""


class Wires:
    """The protocols and wires of a log's heads, opened once each, and the bytes that they make."""

    def __init__(self, opener: Opener, images: Images | None = None) -> None:
        self._opener = opener
        self._images = images if images is not None else Images()
        self._open: dict[int, tuple[HeadSet, Dialect, Model]] = {}

    def encode(self, call: Call, head: Head, messages: tuple[Message, ...]) -> bytes:
        """The bytes of `call` with these messages. Raises `CrozeError` where its wire can't be opened
        here."""
        recorded = call.head
        if recorded is None:
            raise UsageError("The log doesn't say which model and protocol the request was for.")
        if id(recorded) not in self._open:
            self._open[id(recorded)] = (recorded, *self._opener(recorded))
        _, dialect, model = self._open[id(recorded)]
        context = Context(
            system=head.system, messages=messages, tools=head.core, sections=head.sections, tokens=0
        )
        prompt = dialect.encode(context, prefill=call.body.prefill)
        return model.encode(self._images.fill(prompt))


def rebuild(moment: Moment, head: Head | None, wires: Wires) -> tuple[bytes | None, Exactness]:
    """The bytes of a request, and whether they are the ones that were sent; None where they can't be
    made at all."""
    body = moment.call.body

    def not_exact(why: Why, text: str) -> Exactness:
        return Exactness(exact=False, size=body.size, sha256=body.body, why=why, text=text)

    if head is None:
        return None, not_exact("head", "The head of this request is no longer stored.")
    try:
        data = wires.encode(moment.call, head, moment.context(head).messages)
    except (CrozeError, ImportError, ValueError, TypeError) as error:
        return None, not_exact("wire", str(error) or type(error).__name__)
    if hashlib.sha256(data).hexdigest() == body.body:
        return data, Exactness(exact=True, size=body.size, sha256=body.body)
    if body.encoder != ENCODER_VERSION:
        text = (
            f"Encoder version {body.encoder} made it; this croze ships version {ENCODER_VERSION}."
        )
        return data, not_exact("encoder", text)
    return data, not_exact(
        "bytes", f"The rebuilt request has {len(data):,} of {body.size:,} bytes."
    )
