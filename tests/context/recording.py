"""Writes logs as live sessions do, with real heads and real request bytes, for what reads them later."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from croze.context.head import Head
from croze.context.project import Projection
from croze.context.requests import Wires, calls_of
from croze.dialect.base import Dialect
from croze.dialect.native import NativeDialect
from croze.dialect.xml import XmlDialect
from croze.llm.anthropic import AnthropicModel
from croze.llm.model import ENCODER_VERSION, Model
from croze.llm.openai import OpenAIModel
from croze.text.tokens import estimate
from croze.types.agent import AgentSpec
from croze.types.context import Section
from croze.types.event import (
    Body,
    Compacted,
    Event,
    FactAdded,
    HeadSet,
    ModelCalled,
    ModelSaid,
    SessionOpened,
    ToolReturned,
    ToolStarted,
    Undone,
    UserSaid,
)
from croze.types.model import Cost, ModelInfo, Prices, Usage, price
from croze.types.parts import Part, Text, ToolCall
from croze.types.tool import Access

PRICES = Prices(input=3.0, output=15.0, cached=0.3, cache_write=3.75)
SECOND = 1_000_000
START = 1_790_000_000 * SECOND


def info(wire: str = "anthropic", **more: Any) -> ModelInfo:
    given: dict[str, Any] = {
        "provider": wire, "model": "m", "window": 100_000, "max_output": 10_000, "wire": wire,
        "prices": PRICES, "base_url": "http://127.0.0.1:9/v1", **more,
    }  # fmt: skip
    return ModelInfo(**given)


def opener(head: HeadSet) -> tuple[Dialect, Model]:
    dialect: Dialect = NativeDialect() if head.dialect == "native" else XmlDialect()
    if head.model.wire == "anthropic":
        return dialect, AnthropicModel(head.model, api_key=None)
    return dialect, OpenAIModel(head.model, api_key=None)


class Recording:
    """A log in the making; `now` is its clock in seconds. Every method appends and gives what names it."""

    def __init__(self, model: ModelInfo | None = None, *, system: str = "You are croze.") -> None:
        self.events: list[Event] = []
        self.heads: dict[str, Head] = {}
        self.wires = Wires(opener)
        self.now = 0.0
        self.step = 0
        self._ids = 0
        self._projection = Projection()
        self.add(SessionOpened(name="Conversation s"))
        self.wear(model or info(), system=system)

    def add(self, body: Body) -> int:
        seq = len(self.events) + 1
        event = Event("session-1", seq, START + round(self.now * SECOND), body)
        self.events.append(event)
        self._projection.feed(event)
        return seq

    def new_id(self) -> str:
        self._ids += 1
        return f"{self._ids:08x}-0000"

    def wear(self, model: ModelInfo, *, system: str, dialect: Any = "native") -> None:
        """From here on this model, asked with this head."""
        digest = hashlib.sha256(system.encode()).hexdigest()
        section = Section("role", "system", "head", estimate(system), "who it is", digest)
        stored = Head(system, (), (section,), estimate(system), "")
        self.head = Head.decode(stored.encode())
        self.heads[self.head.digest] = self.head
        self.add(HeadSet(AgentSpec(), model, dialect, self.head.digest, self.head.tokens))
        self.model = model

    def user(self, text: str) -> str:
        name = self.new_id()
        self.add(UserSaid(name, (Text(text),), tokens=estimate(text)))
        return name

    def fact(self, key: str, text: str, **more: Any) -> str:
        name = self.new_id()
        self.add(FactAdded(key, name, text, tokens=estimate(text), **more))
        return name

    def compact(self, **fields: Any) -> int:
        given: dict[str, Any] = {"policy": "batch", "reason": "above the watermark", **fields}
        return self.add(Compacted(**given))

    def undo(self, first: int, last: int) -> int:
        return self.add(
            Undone(undo_id=self.new_id(), kind="undo", turns=(1,), hidden=((first, last),))
        )

    def ask(
        self, *, prefill: bool = False, same_step: bool = False, exact: bool = True
    ) -> ModelCalled:
        """A request, with the hash of the bytes that the wire makes of the log, unless that need not be
        `exact`."""
        self.step += 0 if same_step else 1
        context = self._projection.context(
            self.head.system, self.head.core, self.head.sections, prefill=prefill
        )
        body = ModelCalled(
            step=self.step, model=self.model.name, head=self.head.digest,
            history=len(self.events), body="", rolling="", encoder=ENCODER_VERSION,
            tokens=context.tokens, size=0, prefill=prefill,
        )  # fmt: skip
        if not exact:
            self.add(body)
            return body
        draft = Event("session-1", len(self.events) + 1, 0, body)
        (call,) = calls_of([*self.events, draft])[-1:]
        data = self.wires.encode(call, self.head, context.messages)
        sent = ModelCalled(
            step=body.step, model=body.model, head=body.head, history=body.history,
            body=hashlib.sha256(data).hexdigest(), rolling="", encoder=body.encoder,
            tokens=body.tokens, size=len(data), prefill=prefill,
        )  # fmt: skip
        self.add(sent)
        return sent

    def say(
        self,
        text: str = "",
        calls: Sequence[ToolCall] = (),
        *,
        usage: Usage | None = None,
        **more: Any,
    ) -> str:
        """The reply to the last request."""
        parts: tuple[Part, ...] = (*((Text(text),) if text else ()), *calls)
        name = self.new_id()
        tokens = sum(estimate(p.raw if isinstance(p, ToolCall) else p.text) for p in parts)
        self.add(
            ModelSaid(
                name, self.step, self.model.name, parts, tokens=tokens, usage=usage or Usage(),
                cost=Cost() if usage is None else price(usage, self.model.prices), **more,
            )
        )  # fmt: skip
        return name

    def result(self, call: ToolCall, text: str, *, digest: str = "") -> str:
        name = self.new_id()
        self.add(ToolStarted(call.id, call.name, Access(read=True), dict(call.args)))
        self.add(
            ToolReturned(
                call.id, name, call.name, True, "", text, digest=digest, tokens=estimate(text)
            )
        )
        return name

    def tool(self, name: str, args: Mapping[str, Any]) -> ToolCall:
        self._ids += 1
        raw = str(dict(args))
        return ToolCall(f"call{self._ids:05d}", name, dict(args), raw)

    def work(
        self,
        name: str,
        args: Mapping[str, Any],
        text: str,
        *,
        cached: int | None = None,
        idle: float = 5.0,
        digest: str = "",
        exact: bool = True,
    ) -> tuple[ToolCall, str]:
        """A whole step with one call: request, reply, result; gives the call and its result's id."""
        self.now += idle
        sent = self.ask(exact=exact)
        call = self.tool(name, args)
        usage = Usage(input=sent.tokens, output=20, cached=cached, cache_write=0)
        self.say("", [call], usage=usage)
        return call, self.result(call, text, digest=digest)
