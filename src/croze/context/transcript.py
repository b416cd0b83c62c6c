"""A stretch of the log in compact form, for whoever has to summarise it."""

from collections.abc import Sequence
from typing import Any

from croze.context.account import last_undone, outcome_of, said_text, title_of, user_text
from croze.context.kinds import unwrapped
from croze.context.receipt import short
from croze.text.tokens import weigh
from croze.types.event import Event, FactAdded, ModelSaid, ToolReturned, UserSaid
from croze.types.parts import ToolCall

_USER = 800
_REPLY = 300
_FAILURE = 400
_RESULT = 160
_FACT = 120
_NOTE = 32
_USER_SHARE = 0.4
"""The share of the space that the user's words may take; the newest steps get the rest."""


def transcript(events: Sequence[Event], since: int, until: int, characters: int) -> str:
    """Events after `since` up to `until`, one a line, in at most `characters`.

    The user's words come first, newest and first ones before those between; then the newest steps as
    far as they fit. Where lines are left out, a line says how many.
    """
    undone = last_undone(events)
    calls: dict[str, tuple[str, dict[str, Any]]] = {}
    lines: list[tuple[bool, str]] = []
    for event in events:
        if event.seq > until:
            break
        if undone is not None and undone.hides(event.seq):
            continue
        body = event.body
        if isinstance(body, ModelSaid):
            for part in body.parts:
                if isinstance(part, ToolCall):
                    name, args = unwrapped(part.name, part.args)
                    calls[part.id] = name, dict(args)
        if event.seq <= since:
            continue
        match body:
            case UserSaid():
                lines.append((True, f"user: {short(user_text(body), _USER)}"))
            case ModelSaid(purpose="main") if text := said_text(body):
                lines.append((False, f"agent: {short(text, _REPLY)}"))
            case ToolReturned():
                name, args = calls.get(body.call_id, (body.name, {}))
                lines.append((False, f"call: {_call(body, name, args)}"))
            case FactAdded(layer="history" | "current"):
                lines.append((False, f"told: {short(body.text, _FACT)}"))
            case _:
                pass
    return _fit(lines, characters)


def _call(body: ToolReturned, name: str, args: dict[str, Any]) -> str:
    title = short(title_of(name, args), 160)
    outcome = short(outcome_of(body), _RESULT)
    if body.ok:
        return f"{title} -> {outcome}"
    tail = short(body.text[-4 * _FAILURE :], _FAILURE)
    return f"{title} -> FAILED: {outcome}" + (f" | {tail}" if tail and tail != outcome else "")


def _fit(lines: Sequence[tuple[bool, str]], characters: int) -> str:
    """The lines that fit, by what they weigh in tokens, with notes of what is left out."""
    kept: set[int] = set()
    room = float(characters)
    said = [i for i, (by_user, _) in enumerate(lines) if by_user]
    for i in said[:1] + said[:0:-1]:
        cost = weigh(lines[i][1]) + _NOTE
        if room - cost >= characters * (1 - _USER_SHARE) or not kept:
            kept.add(i)
            room -= cost
    for i in range(len(lines) - 1, -1, -1):
        if i not in kept:
            room -= weigh(lines[i][1]) + 1
            if room < _NOTE:
                break
            kept.add(i)
    out: list[str] = []
    left_out = 0
    for i, (_, line) in enumerate(lines):
        if i in kept:
            if left_out:
                out.append(f"[{left_out} lines left out]")
                left_out = 0
            out.append(line)
        else:
            left_out += 1
    if left_out:
        out.append(f"[{left_out} lines left out]")
    text = "\n".join(out)
    while weigh(text) > characters:
        text = f"{text[: int(len(text) * 0.9)]}…" if len(text) > 10 else ""
    return text
