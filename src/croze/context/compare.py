"""Two requests of a session held against each other: what came, what went, what changed."""

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from croze.context.report import GONE, MessageRow, Report


class MessageChange(Struct, frozen=True, omit_defaults=True):
    """A message that came, went or stands otherwise. `before` and `after` are its tokens (estimates),
    `was` and `now` how it stood and stands(`undone` where the log takes it back)."""

    change: Literal["came", "went", "changed"]
    id: str
    role: str
    event: int
    before: int
    after: int
    was: str
    now: str
    text: str
    name: str = ""


class SectionChange(Struct, frozen=True):
    """A section whose tokens or text aren't the same; 0 where it isn't there."""

    layer: str
    name: str
    before: int
    after: int
    change: Literal["came", "went", "changed"]


class Difference(Struct, frozen=True):
    """From one request to another; `before` and `after` are their tokens."""

    session: str
    a: str
    b: str
    before: int
    after: int
    sections: tuple[SectionChange, ...]
    messages: tuple[MessageChange, ...]
    unchanged: int


def difference(
    a: tuple[str, Report],
    b: tuple[str, Report],
    digests: tuple[Mapping[str, str], Mapping[str, str]],
) -> Difference:
    """The difference of two reports, each with the request's name; `digests` are those of the parts of
    their heads."""
    (a_name, old), (b_name, new) = a, b
    messages, unchanged = _messages(old.messages, new.messages)
    return Difference(
        session=new.session,
        a=a_name,
        b=b_name,
        before=old.tokens,
        after=new.tokens,
        sections=tuple(_sections(old, new, digests)),
        messages=tuple(messages),
        unchanged=unchanged,
    )


def _sections(
    old: Report, new: Report, digests: tuple[Mapping[str, str], Mapping[str, str]]
) -> list[SectionChange]:
    was, now = _sums(old), _sums(new)
    found: list[SectionChange] = []
    for layer, name in {**was, **now}:
        before, after = was.get((layer, name)), now.get((layer, name))
        if before is None:
            found.append(SectionChange(layer, name, 0, after or 0, "came"))
        elif after is None:
            found.append(SectionChange(layer, name, before, 0, "went"))
        elif layer == "system":
            if digests[0].get(name) != digests[1].get(name):
                found.append(SectionChange(layer, name, before, after, "changed"))
        elif before != after:
            found.append(SectionChange(layer, name, before, after, "changed"))
    return found


def _sums(report: Report) -> dict[tuple[str, str], int]:
    sums: dict[tuple[str, str], int] = {}
    for row in report.sections:
        key = (row.layer, row.name)
        sums[key] = sums.get(key, 0) + row.tokens
    return sums


def _messages(
    old: Sequence[MessageRow], new: Sequence[MessageRow]
) -> tuple[list[MessageChange], int]:
    was = {row.event: row for row in old}
    now = {row.event: row for row in new}
    found: list[MessageChange] = []
    unchanged = 0
    for event in sorted({*was, *now}):
        before, after = was.get(event), now.get(event)
        here = before is not None and before.standing not in GONE
        there = after is not None and after.standing not in GONE
        row = after or before
        assert row is not None
        if not here and not there:
            continue
        if here and there and before is not None and after is not None:
            same = (before.standing, before.tokens, before.cut) == (
                after.standing, after.tokens, after.cut,
            )  # fmt: skip
            if same:
                unchanged += 1
                continue
        found.append(
            MessageChange(
                change="came" if not here else "went" if not there else "changed",
                id=row.id,
                role=row.role,
                event=event,
                before=before.tokens if here and before is not None else 0,
                after=after.tokens if there and after is not None else 0,
                was=before.standing if before is not None else "",
                now=after.standing if after is not None else "undone",
                text=row.text,
                name=row.name,
            )
        )
    return found, unchanged
