"""What a model writes to have sub-agents work: YAML into orders, with exact words for what is wrong."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, cast

from msgspec import Struct

from croze.text.plain_yaml import load_plain
from croze.types.team import HUB, Lease, Order

MOST_CHARACTERS = 200_000
MOST = 50
"""Sub-agents that one call may ask for."""

Mode = Literal["parallel", "serial"]

_KEYS = ("name", "task", "label", "max_turns", "max_cost", "max_time")
_OTHER = {"agent": "name", "prompt": "task", "max_steps": "max_turns"}
_ALONE = r"([ ]*(?:-[ ]+)?)(task|label|prompt):[ ]+([^\s'\"|>\[{&*!].*)"
"""A value on its key's own line, without quotation marks: YAML would end it at ` #`, and refuse `: `."""


class Orders(Struct, frozen=True):
    mode: Mode
    orders: tuple[Order, ...]


class OrdersError(ValueError):
    """What is wrong with the YAML, for the model."""


def read_orders(text: str, known: Sequence[str]) -> Orders:
    """The orders that `text` gives to agents, of which `known` are the names that there are. Raises
    OrdersError that names all that is wrong."""
    value = _load(text)
    if isinstance(value, list):
        value = {"subagents": value}
    if not isinstance(value, dict) or "subagents" not in value:
        raise OrdersError("It has no list named subagents.")
    problems = [
        f"{key} isn't known beside mode and subagents."
        for key in value
        if key not in ("mode", "subagents")
    ]
    mode = value.get("mode") or "parallel"
    if mode not in ("parallel", "serial"):
        problems.append(f"mode is {_short(mode)}: it must be parallel or serial.")
    rows = value["subagents"]
    if not isinstance(rows, list) or not rows:
        raise OrdersError(
            " ".join((*problems, "subagents must be a list with at least one entry."))
        )
    if len(rows) > MOST:
        problems.append(f"subagents has {len(rows)} entries; {MOST} are allowed.")
    orders: list[Order] = []
    for number, row in enumerate(rows, 1):
        found = _order(row, known)
        if isinstance(found, Order):
            orders.append(found)
        else:
            problems += (f"Entry {number}: {problem}" for problem in found)
    if problems:
        raise OrdersError(" ".join(problems))
    return Orders(cast(Mode, mode), tuple(orders))


def _order(row: object, known: Sequence[str]) -> Order | list[str]:
    if not isinstance(row, dict):
        return [f"it is {_short(row)}, not a name and a task."]
    row = {_OTHER.get(key, key): value for key, value in row.items()}
    problems = [f"{_short(key)} isn't known." for key in row if key not in _KEYS]
    texts: dict[str, str] = {}
    for key in ("name", "task"):
        found = row.get(key)
        if not isinstance(found, str) or not found.strip():
            problems.append(f"{key} is missing." if not found else f"{key} must be text.")
        else:
            texts[key] = found.strip()
    label = row.get("label") or ""
    if not isinstance(label, str):
        problems.append("label must be text.")
    elif label.strip() == HUB:
        problems.append(f"label can't be {HUB}.")
    name = texts.get("name", "")
    if name and name not in known:
        problems.append(f"there is no agent named {_short(name)}{_near(name, known)}.")
    limits: dict[str, float | None] = {}
    for key in ("max_turns", "max_cost", "max_time"):
        try:
            limits[key] = _number(row.get(key), whole=key == "max_turns")
        except ValueError:
            kind = "a whole number" if key == "max_turns" else "a number"
            problems.append(f"{key} must be {kind} above 0.")
    if problems:
        return problems
    steps = limits["max_turns"]
    return Order(
        agent=name,
        task=texts["task"],
        label=str(label).strip()[:80],
        limits=Lease(
            steps=None if steps is None else int(steps),
            cost=limits["max_cost"],
            seconds=limits["max_time"],
        ),
    )


def _number(value: object, *, whole: bool) -> float | None:
    if value is None or value == "":
        return None
    number = float(int(str(value)) if whole else float(str(value)))
    if not 0 < number < 1e9:
        raise ValueError
    return number


def _load(text: str) -> Any:
    if len(text) > MOST_CHARACTERS:
        raise OrdersError(f"It has more than {MOST_CHARACTERS:,} characters.")
    text = "\n".join(_quoted(_unfenced(text).replace("\t", "  ").splitlines()))
    try:
        return load_plain(text)
    except ValueError as error:
        raise OrdersError(str(error)) from error


def _unfenced(text: str) -> str:
    lines = text.strip("\n").splitlines()
    if len(lines) > 1 and lines[0].strip().startswith("```") and lines[-1].strip() == "```":
        lines = lines[1:-1]
    return "\n".join(lines)


def _quoted(lines: Sequence[str]) -> Iterator[str]:
    """The lines, texts that stand on their key's line within quotation marks. Block texts stay."""
    block = -1
    for at, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if block >= 0 and (not line.strip() or indent > block):
            yield line
            continue
        block = -1
        found = re.fullmatch(_ALONE, line)
        if found is None:
            if re.search(r":[ ]+[|>][-+0-9]*[ ]*$", line):
                block = len(line) - len(line.lstrip(" -"))
            yield line
            continue
        lead, key, value = found.groups()
        following = next((each for each in lines[at + 1 :] if each.strip()), "")
        if len(following) - len(following.lstrip()) > len(lead):
            yield line  # it goes on below
        else:
            yield f"{lead}{key}: '{value.rstrip().replace(chr(39), chr(39) * 2)}'"


def _near(name: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches  # only where a model errs

    near = get_close_matches(name, known, n=1)
    there = f"there are {', '.join(known)}" if known else "there are none"
    return f" (did you mean {near[0]}? {there})" if near else f" ({there})"


def _short(value: object) -> str:
    text = str(value)
    return repr(text if len(text) <= 60 else f"{text[:60]}…")
