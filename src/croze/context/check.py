"""Checks of the context: at the start, of the head, before each request, of the usage after it."""

from collections.abc import Collection, Sequence

from croze.types.context import Budget, Check, Context, Message
from croze.types.model import ModelInfo
from croze.types.parts import CallResult, Text, ToolCall
from croze.types.tool import ToolDoc

HEADINGS = ("TOOL USE", "CAPABILITIES", "RULES", "SYSTEM INFORMATION", "OBJECTIVE")
SMALL_WINDOW = 16_000
FULL_SHARE = 0.8
SYSTEM_TOKENS = 30_000
CEILINGS = {"system": 0.15, "history": 0.47, "current": 0.04}
"""The share of the budget above which a layer is reported."""

WARNINGS = frozenset(("roles", "result_order", "usage", "window", "share"))
"""Codes of what is warned of before a request and after it."""

USAGE_FACTOR = 1.5
USAGE_SLACK = 1_000
"""An estimate is reported that is off by this factor and by more than so many tokens."""


def check_start(model: ModelInfo, tools: Sequence[ToolDoc], *, talks: bool = False) -> list[Check]:
    """Whether a session can begin at all: a model with a usable window, and a tool, but for an agent that
    only `talks`. That a model is unknown is told by `croze.llm.advice`."""
    found: list[Check] = []
    if not model.model:
        found.append(_error("no_model", "No model is chosen: set one with --model provider:model."))
    if not tools and not talks:
        found.append(_error("no_tools", "The agent has no tool: name some in its tools list."))
    if model.window <= 0:
        text = f"The window of {model.name} is {model.window} tokens: set its real one."
        found.append(_error("no_window", text, model=model.name, window=model.window))
    elif model.window < SMALL_WINDOW:
        text = (
            f"The window of {model.name} is small ({model.window:,} tokens): expect short sessions."
        )
        found.append(_warning("small_window", text, model=model.name, window=model.window))
    return found


def check_head(text: str, core: Sequence[str], *, schemas: Collection[str] = ()) -> list[Check]:
    """Whether the rendered head has its parts (else an error) and names the `core` tools (else a
    warning). `schemas` are the tools that go to the model beside the text."""
    lines = text.splitlines()
    opening = {
        lines[i + 2] for i in range(len(lines) - 2) if lines[i] == "====" and not lines[i + 1]
    }
    found = [
        _error("head_part", f"The system prompt lacks its part {heading}.", part=heading)
        for heading in HEADINGS
        if heading not in opening
    ]
    words = set("".join(c if c.isalnum() or c == "_" else " " for c in text).split())
    found.extend(
        _warning("core_tool", f"The core tool {name} isn't described to the model.", tool=name)
        for name in core
        if name not in schemas and name not in words
    )
    return found


def check_context(
    context: Context,
    budget: Budget,
    *,
    start: int = 0,
    prefill: bool = False,
    tokens: int | None = None,
) -> list[Check]:
    """Checks before a request: roles, order, pairs of calls and results, window.

    Messages before `start` have been checked, so a step costs what is new; shares of the budget are
    looked at where `start` is 0. `prefill`: the last message is a reply that the model goes on with.
    `tokens` is what the provider would count, where that is known better than by the context's estimate.
    """
    messages = context.messages
    found: list[Check] = []
    if not messages:
        found.append(_error("empty", "There is nothing to send: the conversation has no message."))
    elif not _begins_with_user(messages):
        found.append(_error("roles", "The conversation doesn't begin with the user.", message=0))
    elif messages[-1].role == "system":
        text = "The last message is the history's summary: nothing asks for a reply."
        found.append(_error("roles", text, message=len(messages) - 1))
    elif messages[-1].role == "assistant" and not prefill:
        found.append(
            _error("roles", "The last message is the model's own.", message=len(messages) - 1)
        )
    before = messages[start - 1] if 0 < start <= len(messages) else None
    for i in range(start, len(messages)):
        found.extend(_check_follows(i, before, messages[i]))
        before = messages[i]
    if before is not None and before.role == "assistant" and not prefill:
        found.extend(_check_pairs(len(messages), _calls(before), []))
    found.extend(_check_window(context.tokens if tokens is None else tokens, budget))
    if start == 0:
        found.extend(_check_shares(context, budget))
    return found


def _begins_with_user(messages: Sequence[Message]) -> bool:
    """Whether the user has the first word; a summary may stand above it."""
    for index in range(len(messages)):
        if messages[index].role != "system":
            return messages[index].role == "user"
    return False


def check_usage(estimated: int, reported: int | None) -> Check | None:
    """Whether the provider counted a very different input from what was estimated."""
    if reported is None or abs(reported - estimated) <= USAGE_SLACK:
        return None
    if max(reported, estimated) <= USAGE_FACTOR * min(reported, estimated):
        return None
    text = f"The provider counted {reported:,} input tokens, {estimated:,} were estimated."
    return _warning("usage", text, estimated=estimated, reported=reported)


def _check_follows(index: int, before: Message | None, message: Message) -> list[Check]:
    found: list[Check] = []
    calls = _calls(before) if before is not None and before.role == "assistant" else []
    results = [part.call_id for part in message.parts if isinstance(part, CallResult)]
    documented = before is not None and before.layer == "documentation"
    if before is not None and not documented and message.key < before.last:
        text = f"Message {index} (event {message.key}) stands behind a later one ({before.last})."
        found.append(_error("order", text, message=index))
    if message.role == "assistant":
        if before is not None and before.role == "assistant":
            text = f"Message {index} follows another reply of the model."
            found.append(_warning("roles", text, message=index))
        if results:
            text = f"Message {index} is the model's and holds a tool result."
            found.append(_error("pairs", text, message=index))
            results = []
    elif message.role == "system" and not all(isinstance(p, Text) for p in message.parts):
        text = f"Message {index} is a summary and holds more than text."
        found.append(_error("roles", text, message=index))
    elif any(isinstance(part, ToolCall) for part in message.parts):
        text = f"Message {index} is the user's and holds a tool call."
        found.append(_error("pairs", text, message=index))
    found.extend(_check_pairs(index, calls, results))
    return found


def _check_pairs(index: int, calls: list[str], results: list[str]) -> list[Check]:
    """Each call has one result in the next message, in the order of the calls."""
    if calls == results:
        return []
    found: list[Check] = []
    for call in calls:
        count = results.count(call)
        if count != 1:
            text = f"Call {call} before message {index} has {count} results instead of one."
            found.append(_error("pairs", text, message=index, call=call))
    for result in results:
        if result not in calls:
            text = f"The result of {result} in message {index} answers no call before it."
            found.append(_error("pairs", text, message=index, call=result))
    if not found:
        text = f"The results in message {index} don't stand in the order of their calls."
        found.append(_warning("result_order", text, message=index))
    return found


def _check_window(tokens: int, budget: Budget) -> list[Check]:
    available = budget.available
    share = tokens / available if available else float("inf")
    params = {"tokens": tokens, "available": available}
    if share > 1:
        text = (
            f"The context has about {tokens:,} tokens; the model takes {available:,}. Shorten the "
            "task, begin a new conversation, or take a model with a larger window."
        )
        return [_error("window", text, **params)]
    if share >= FULL_SHARE:
        text = f"The context is {share:.0%} full ({tokens:,} of {available:,} tokens)."
        return [_warning("window", text, **params)]
    return []


def _check_shares(context: Context, budget: Budget) -> list[Check]:
    found: list[Check] = []
    layers = context.by_layer()
    for layer, ceiling in CEILINGS.items():
        tokens = layers.get(layer, 0)
        limit = ceiling * budget.available
        if layer == "system":
            limit = min(limit, SYSTEM_TOKENS)
        if tokens > limit:
            text = f"The {layer} layer takes {tokens:,} tokens, above its ceiling of {limit:,.0f}."
            found.append(_warning("share", text, layer=layer, tokens=tokens, ceiling=round(limit)))
    return found


def _calls(message: Message) -> list[str]:
    return [part.id for part in message.parts if isinstance(part, ToolCall)]


def _error(code: str, text: str, **params: object) -> Check:
    return Check(level="error", code=code, text=text, params=params)


def _warning(code: str, text: str, **params: object) -> Check:
    return Check(level="warning", code=code, text=text, params=params)
