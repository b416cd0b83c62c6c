"""One request in the terminal: its sums, its sections, what its history is made of, its messages."""

from typing import TYPE_CHECKING

from croze.text.display import one_line
from croze.ui.cli.output import local_time
from croze.ui.i18n import _
from croze.ui.inspector.table import WIDE, count, money, percent, prose, rows, word
from croze.ui.render import Screen

if TYPE_CHECKING:
    from croze.app.context import Exactness, LayerRow, MessageRow, Report, SectionRow, Unrecorded

SHORT = 8
KINDS = 8


def draw_report(screen: Screen, report: "Report", *, messages: int) -> None:
    """The whole report; of the messages the last `messages`."""
    _draw_top(screen, report)
    _draw_sections(screen, report)
    _draw_kinds(screen, report)
    _draw_messages(screen, report.messages, messages)
    if report.unknown:
        screen.line("")
        text = _("{count} events of this log are of another version: what they did isn't shown",
                 count=report.unknown)  # fmt: skip
        prose(screen, text, "yellow")


def draw_unrecorded(screen: Screen, found: "Unrecorded", *, messages: int) -> None:
    """A conversation of which no request is recorded."""
    screen.line(f"{found.session[:SHORT]}  {one_line(found.name, 60)}", "bold")
    if found.imported:
        text = _("no request of this conversation is recorded: it was imported")
    else:
        text = _("no request of this conversation is recorded: nothing was asked yet")
    prose(screen, text, "yellow")
    _draw_messages(screen, found.messages, messages)


def _draw_top(screen: Screen, report: "Report") -> None:
    step = _("step {step} of {steps}", step=report.step, steps=report.steps)
    if report.parts > 1:
        step += " " + _("(request {part} of {parts})", part=report.part, parts=report.parts)
    name = "" if report.name.endswith(f" {report.session[:SHORT]}") else one_line(report.name, 40)
    title = " · ".join(filter(None, (report.session[:SHORT], name, step, local_time(report.at))))
    screen.line(one_line(title, screen.width - 1), "bold")
    wire = " · ".join(filter(None, (report.model, report.dialect)))
    screen.line(one_line(wire, screen.width - 1))
    ok = report.exact.exact
    prose(screen, exactness(report.exact), *(() if ok else ("yellow",)))
    prose(screen, _size(report))
    if report.reported is not None:
        prose(screen, _usage(report))
    if report.retries:
        screen.line(_("tried {count} times before", count=report.retries), "dim")
    if report.asides:
        parts = [
            f"{word(aside.purpose)} × {aside.count} ({count(aside.tokens)}, {money(aside.cost)})"
            for aside in report.asides
        ]
        prose(screen, _("beside the conversation: {list}", list=", ".join(parts)), "dim")


def exactness(exact: "Exactness") -> str:
    """Whether the rebuilt bytes are those that were sent."""
    size = count(exact.size)
    if exact.exact:
        return _("exact: {size} bytes, as they were sent", size=size)
    match exact.why:
        case "encoder":
            text = _("not exact: another version of croze encoded this request")
        case "head":
            text = _("not exact: the head of this request is no longer stored")
        case "wire":
            text = _("not exact: its wire can't be opened here ({reason})", reason=exact.text)
        case _:
            text = _("not exact: the rebuilt bytes differ from those sent ({reason})",
                     reason=exact.text)  # fmt: skip
    return text


def _size(report: "Report") -> str:
    share = report.tokens / report.available if report.available else None
    parts = [
        _(
            "{tokens} tokens, {share} of the {available} that the window leaves for input",
            tokens=count(report.tokens), share=percent(share), available=count(report.available),
        )
    ]  # fmt: skip
    if report.reported is None:
        parts.append(_("estimated, the provider reported nothing"))
    else:
        off = (report.estimated - report.reported) / report.reported if report.reported else 0.0
        parts.append(
            _(
                "estimated {estimated} ({off})",
                estimated=count(report.estimated), off=f"{'+' if off >= 0 else '−'}{percent(abs(off))}",
            )
        )  # fmt: skip
    return "; ".join(parts)


def _usage(report: "Report") -> str:
    reads, writes = report.cached, report.written
    fresh = (report.reported or 0) - (reads or 0) - (writes or 0)
    return _(
        "input {input}: {cached} cached, {written} written to the cache, {fresh} fresh; output {output}",
        input=money(report.cost_input), cached=count(reads), written=count(writes),
        fresh=count(fresh), output=money(report.cost_output),
    )  # fmt: skip


def _draw_sections(screen: Screen, report: "Report") -> None:
    wide = screen.width >= WIDE
    head = [_("section"), _("tokens"), _("share"), _("cached"), _("cost"), _("stands")]
    table = [[*head, _("reason and origin") if wide else ""]]
    marks: list[tuple[str, ...]] = [("dim",)]
    notes: list[str] = [""]
    for layer in report.layers:
        table.append([_layer_name(layer), count(layer.tokens), "", "", "", "", ""])
        ceiling = ""
        if layer.ceiling is not None:
            ceiling = _("ceiling {tokens}", tokens=count(layer.ceiling))
        table[-1][5 if not wide else 6] = ceiling
        marks.append(("yellow",) if layer.over else ("bold",))
        notes.append("")
        for row in report.sections:
            if row.layer == layer.layer:
                note = " · ".join(filter(None, (row.reason, row.origin)))
                table.append(_section_cells(row, note if wide else ""))
                marks.append(())
                notes.append("" if wide else note)
    screen.line("")
    right = frozenset((1, 2, 3, 4))
    for text, styles, note in zip(
        rows(table, width=screen.width - 1, right=right), marks, notes, strict=True
    ):
        screen.line(text, *styles)
        if note:
            screen.line(f"      {one_line(note, screen.width - 8)}", "dim")


def _layer_name(layer: "LayerRow") -> str:
    return word(layer.layer)


def _section_cells(row: "SectionRow", note: str) -> list[str]:
    name = f"  {one_line(row.name, 24)}"
    if row.count > 1:
        name += f" ×{row.count}"
    cached = "—"
    if row.cached is not None:
        cached = percent(row.cached / row.tokens if row.tokens else 0.0)
    return [
        name, count(row.tokens), percent(row.share), cached, money(row.cost),
        word(row.stability), note,
    ]  # fmt: skip


def _draw_kinds(screen: Screen, report: "Report") -> None:
    if not report.kinds:
        return
    screen.line("")
    screen.line(_("what was said and done, by kind (estimates)"), "bold")
    table = [
        [f"  {word(row.kind)}", one_line(row.name, 30), f"×{row.count}", count(row.tokens),
         percent(row.share)]
        for row in report.kinds[:KINDS]
    ]  # fmt: skip
    for text in rows(table, width=screen.width - 1, right=frozenset((2, 3, 4))):
        screen.line(text)
    if len(report.kinds) > KINDS:
        screen.line("  " + _("and {count} more", count=len(report.kinds) - KINDS), "dim")


def _draw_messages(screen: Screen, messages: "tuple[MessageRow, ...]", most: int) -> None:
    shown = messages[len(messages) - most :] if 0 < most < len(messages) else messages
    if most <= 0 or not shown:
        return
    screen.line("")
    screen.line(_("messages"), "bold")
    if len(shown) < len(messages):
        left = len(messages) - len(shown)
        screen.line("  " + _("{count} earlier ones; --messages N shows more", count=left), "dim")
    table = [
        [
            f"  {row.id[:SHORT]}{'*' if row.marked else ''}", str(row.step), word(row.role),
            one_line(row.name, 18), count(row.tokens),
            word("cut") if row.cut and row.standing == "full" else word(row.standing), row.text,
        ]
        for row in shown
    ]  # fmt: skip
    for text, row in zip(
        rows(table, width=screen.width - 1, right=frozenset((1, 4))), shown, strict=True
    ):
        screen.line(text, *(() if row.standing == "full" else ("dim",)))
