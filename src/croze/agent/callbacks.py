"""Callbacks: names over the bus, for programs that want to be called at a point rather than to watch.

A callback gets the event that marks the point, or a `Delta(kind="phase")` where nothing is recorded:
while facts of a kind are gathered (the delta's name is the gatherer's) or a session is resumed. Points
that frame something have a `pre_` and a `post_` name, or `_start` and `_end`; `conversation_end` is the
end of every turn. The bus collects what callbacks raise. Points of a session's opening are reached
before `App.session` returns: register them with `App.on`.
"""

from collections.abc import Callable

from croze.agent.bus import Bus, Item
from croze.types.event import (
    Event,
    ModelCalled,
    ModelSaid,
    SessionOpened,
    Stopped,
    ToolReturned,
    ToolStarted,
)
from croze.types.stream import Delta


def _body(item: Item) -> object:
    return item.body if isinstance(item, Event) else item


def _phase(name: str, *, done: bool) -> Callable[[Item], bool]:
    def matches(item: Item) -> bool:
        if not isinstance(item, Delta) or item.kind != "phase":
            return False
        return item.name == name and item.done is done

    return matches


def _is(kind: type) -> Callable[[Item], bool]:
    return lambda item: isinstance(_body(item), kind)


def _call_delta(*, done: bool) -> Callable[[Item], bool]:
    def matches(item: Item) -> bool:
        if not isinstance(item, Delta) or item.kind != "call":
            return False
        return item.done if done else bool(item.name) and not item.done

    return matches


POINTS: dict[str, Callable[[Item], bool]] = {
    "conversation_start": _is(SessionOpened),
    "conversation_end": _is(Stopped),
    "pre_tool_call": _is(ToolStarted),
    "post_tool_call": _is(ToolReturned),
    "api_request_start": _is(ModelCalled),
    "api_request_end": _is(ModelSaid),
    "pre_rules_loaded": _phase("rules", done=False),
    "post_rules_loaded": _phase("rules", done=True),
    "pre_llm_friendly_packages_loaded": _phase("libraries", done=False),
    "post_llm_friendly_packages_loaded": _phase("libraries", done=True),
    "pre_tools_loaded": _phase("tools", done=False),
    "post_tools_loaded": _phase("tools", done=True),
    "pre_conversation_resumed": _phase("resume", done=False),
    "post_conversation_resumed": _phase("resume", done=True),
    "tool_generated_started": _call_delta(done=False),
    "tool_generated_end": _call_delta(done=True),
}
"""Each point and what on the bus marks it."""


def register(bus: Bus, point: str, callback: Callable[[Item], None]) -> Callable[[], None]:
    """Call `callback` whenever `point` is reached; several may be registered. Gives the function that
    ends it. An unknown point is a ValueError that names the known ones."""
    matches = POINTS.get(point)
    if matches is None:
        raise ValueError(f"unknown callback point {point!r}; there are: {', '.join(POINTS)}")

    def watcher(item: Item) -> None:
        if matches(item):
            callback(item)

    return bus.subscribe(watcher)
