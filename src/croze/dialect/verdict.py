"""The verdict over a scanned reply: which calls may run, which are refused and why.

A call is refused as `ambiguous_body` wherever the text after it could hold its real end: a file's
content that looks like the end of its own call must never be written in part.
"""

import re
from collections.abc import Callable, Sequence

from croze.dialect.base import Reply
from croze.dialect.faults import ambiguous, malformed, repeated, truncated, wrong_parameter
from croze.dialect.grammar import BLANKS, NEXT, Grammar
from croze.dialect.segments import CallRun, Run
from croze.dialect.strays import Slip, slips, tells_calls
from croze.types.parts import CallError, Part, Text, Thinking, ToolCall

_TAG = re.compile(r"<(/?)([^<>/ \t\r\n]+)[ \t\r\n]*>")
_FOLLOWER = re.compile(r"[ \t\r\n]*<([^<>/ \t\r\n]+)([^<>]*)>")


def judge(
    segments: Sequence[Run | CallRun],
    grammar: Grammar,
    new_id: Callable[[], str],
    *,
    cut: bool,
    halted: bool,
) -> Reply:
    """The reply that `segments` make. `cut`: it ended without a proper finish; `halted`: at a result
    that the model wrote itself."""
    found = {
        index: slips(run, grammar)
        for index, run in enumerate(segments)
        if isinstance(run, Run) and not run.thinking
    }
    errors = _errors(segments, found, grammar, cut=cut)
    parts: list[Part] = []
    for index, segment in enumerate(segments):
        if isinstance(segment, CallRun):
            parts.append(_call(segment, errors.get(index)))
        elif segment.thinking:
            parts.append(Thinking(text=segment.text, opaque=segment.opaque))
        else:
            parts.extend(_text(segment, found[index], new_id))
    kept = tuple(p for p in parts if not isinstance(p, Text) or p.text)
    if halted:
        return Reply(parts=kept, problem="wrote_result")
    if any(isinstance(p, ToolCall) for p in kept):
        return Reply(parts=kept)
    told = any(
        tells_calls(s, grammar)
        for s in segments
        if isinstance(s, Run) and (s.tagged or not s.thinking)
    )
    return Reply(parts=kept, problem="fenced" if told else "")


def _call(call: CallRun, error: CallError | None) -> ToolCall:
    return ToolCall(
        id=call.id, name=call.grammar.shape.name, args=dict(call.args()), raw=call.raw, error=error
    )


def _text(run: Run, found: Sequence[Slip], new_id: Callable[[], str]) -> list[Part]:
    """A run of text in which calls that were written wrongly become calls with an error."""
    parts: list[Part] = []
    text, position = run.text, 0
    for slip in found:
        parts.append(Text(text[position : slip.start]))
        position = slip.end
        raw = text[slip.start : slip.end]
        parts.append(ToolCall(id=new_id(), name=slip.name, raw=raw, error=slip.error))
    parts.append(Text(text[position:]))
    return parts


def _errors(
    segments: Sequence[Run | CallRun],
    found: dict[int, list[Slip]],
    grammar: Grammar,
    *,
    cut: bool,
) -> dict[int, CallError]:
    calls = [index for index, segment in enumerate(segments) if isinstance(segment, CallRun)]
    if not calls:
        return {}
    ends = _possible_ends(segments, found, grammar, calls[0])
    goes_on = any(
        isinstance(run, Run) and (run.tagged or not run.thinking) and run.text.strip(BLANKS)
        for run in segments[calls[-1] + 1 :]
    )
    last_of = {
        call.grammar.tag: index for index, call in enumerate(segments) if isinstance(call, CallRun)
    }
    errors: dict[int, CallError] = {}
    doubtful = -1
    for index in calls:
        call = segments[index]
        assert isinstance(call, CallRun)
        tag = call.grammar.tag
        closing = (tag, call.bodies[-1][0]) if call.bodies else (tag,)
        error = _own_error(call, cut=cut)
        possible_end = max(ends.get(name, -1) for name in closing)
        if call.unclear or call.repeated:
            possible_end = max(possible_end, last_of[tag])
        if possible_end > index and call.closed:
            doubtful = max(doubtful, possible_end)
            error = error or ambiguous(f"after this call comes another end of <{tag}>")
        elif index <= doubtful:
            error = ambiguous("it stands before a second possible end of an earlier call")
        elif cut and goes_on:
            error = error or truncated(f"<{tag}>", "it was certain where this call ends")
        if error is not None:
            errors[index] = error
    return errors


def _possible_ends(
    segments: Sequence[Run | CallRun], found: dict[int, list[Slip]], grammar: Grammar, first: int
) -> dict[str, int]:
    """For each tag the last segment in which a close of it stands that closes nothing there."""
    ends: dict[str, int] = {}
    params = frozenset[str]().union(*(shape.params for shape in grammar.tools.values()))
    for index in range(first + 1, len(segments)):
        segment = segments[index]
        if isinstance(segment, CallRun):
            names = _loose_ends(segment, grammar, params)
        elif segment.thinking and not segment.tagged:
            continue
        else:
            harmless = {slip.end for slip in found.get(index, ()) if slip.balanced}
            names = {
                tag[2]
                for tag in _TAG.finditer(segment.text)
                if tag[1] and tag.end() not in harmless
            }
        for name in names:
            if name in grammar.tools or name in params:
                ends[name] = index
    return ends


def _loose_ends(call: CallRun, grammar: Grammar, params: frozenset[str]) -> set[str]:
    """The tags of which `call` may hold another call's real end."""
    own = call.grammar
    sound = call.closed and not call.unclear and not call.repeated
    names = set()
    if not sound and (call.closed or call.steps_back):
        names.add(own.tag)
    depth: dict[str, int] = {}
    for tag in _TAG.finditer(call.raw):
        name = tag[2]
        if name == own.tag or name in own.params:
            continue
        if name not in grammar.tools:
            if tag[1] and not sound and name in params:
                names.add(name)
        elif not tag[1]:
            follower = NEXT.match(call.raw, tag.end())
            assert follower is not None
            if sound and not follower[2] and follower[3] in grammar.tools[name].params:
                depth[name] = depth.get(name, 0) + 1
        elif depth.get(name, 0) > 0:
            depth[name] -= 1
        else:
            names.add(name)
    return names


def _own_error(call: CallRun, *, cut: bool) -> CallError | None:
    """What is wrong with the call taken by itself."""
    tag = call.grammar.tag
    if call.repeated and call.closed:
        return repeated(f"<{tag}>", f"<{call.repeated}>")
    if call.unclear:
        return ambiguous("its values can be read in two ways")
    if call.closed:
        return None
    if not cut:
        error = _unknown_parameter(call)
        if error is not None:
            return error
        if call.nested or call.steps_back:
            return ambiguous("another call of the same tool, or its end, stands in a value")
        if any(close[1] and close[2] == tag for close in _TAG.finditer(call.raw)):
            return malformed(
                f"the value of <{call.param}> isn't closed. </{call.param}> must come right before "
                f"</{tag}> or the next parameter's tag."
            )
    missing = f"</{call.param}> and </{tag}>" if call.param else f"</{tag}>"
    return truncated(f"<{tag}>", missing)


def _unknown_parameter(call: CallRun) -> CallError | None:
    """A wrong tag right behind a closed value: the usual cause of a call that finds no end."""
    if not call.param:
        return None
    raw = call.raw
    close = re.compile(rf"</{re.escape(call.param)}[ \t\r\n]*>").search(raw, call.body_start)
    follower = _FOLLOWER.match(raw, close.end()) if close is not None else None
    if follower is None or follower[1] == call.grammar.tag:
        return None
    name, rest = follower.groups()
    if f"</{name}" not in raw[follower.end() :]:
        return None
    return wrong_parameter(call.grammar.tag, name, rest.strip(BLANKS), call.grammar.params)
