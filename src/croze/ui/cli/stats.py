"""`croze stats`: what the project's sessions took, what their tools did, what the shared cache spared."""

from typing import TYPE_CHECKING

import click

from croze.ui.cli.exits import Exit
from croze.ui.cli.framework import Command
from croze.ui.cli.output import Output, dollars, thousands
from croze.ui.cli.state import State, pass_state
from croze.ui.cli.with_app import with_app, write_json
from croze.ui.i18n import _, mark
from croze.ui.sums import cache_parts

if TYPE_CHECKING:
    from croze.app.app import App
    from croze.app.stats import Stats

MOST_PATHS = 10


@click.command(
    "stats",
    cls=Command,
    help=mark(
        "Show what this project's conversations, or one of them, took: steps, tokens, money, tools, "
        "compactions, and what the shared cache of files and listings spared."
    ),
)
@click.argument("conversation", required=False)
@click.option("--all", "everything", is_flag=True, help=mark("Count sub-agents' sessions, too."))
@click.option("--json", "as_json", is_flag=True, help=mark("Print one JSON object."))
@pass_state
def stats(state: State, conversation: str | None, everything: bool, as_json: bool) -> int:
    async def work(app: "App") -> "Stats":
        from croze.app.stats import project_stats

        return await project_stats(app, conversation, children=everything)

    found = with_app(state, work)
    if as_json:
        return write_json(state, found)
    if not found.sessions:
        state.out.note(_("this project has no conversations yet"))
        return Exit.DONE
    _totals(state.out, found)
    _tools(state.out, found)
    _cache(state.out, found)
    _compactions(state.out, found)
    return Exit.DONE


def _totals(out: Output, found: "Stats") -> None:
    share = "—" if found.cached_share is None else f"{found.cached_share:.0%}"
    rows = [
        (_("conversations"), str(found.sessions)),
        (_("steps"), str(found.steps)),
        (_("input tokens"), thousands(found.input_tokens)),
        (_("of them from the provider's cache"), share),
        (_("output tokens"), thousands(found.output_tokens)),
        (_("cost"), dollars(found.cost)),
    ]
    if found.unknown:
        rows.append((_("replies without a known price"), str(found.unknown)))
    out.table(rows)


def _tools(out: Output, found: "Stats") -> None:
    if not found.tools:
        return
    head = (_("tool"), _("calls"), _("failed"), _("seconds"), _("kB"), _("tokens"))
    rows = [
        (
            tool.name,
            str(tool.calls),
            str(tool.failures),
            f"{tool.seconds:.1f}",
            f"{tool.bytes / 1000:.1f}",
            thousands(tool.tokens),
        )
        for tool in found.tools
    ]
    out.line()
    out.table([head, *rows])


def _cache(out: Output, found: "Stats") -> None:
    parts = cache_parts(found)
    if not parts:
        return
    out.line()
    for part in parts:
        out.line(part)
    cache = found.cache
    if cache.unchanged:
        out.line(
            _(
                "looks that were not sent again: {count}, {tokens} tokens",
                count=cache.unchanged,
                tokens=thousands(cache.tokens_unchanged),
            )
        )
    if cache.saved_calls:
        out.line(
            _(
                "listings that were not needed: {count}, at {tokens} tokens each",
                count=cache.saved_calls,
                tokens=cache.tokens_a_call,
            )
        )
    if found.hot:
        out.line()
        head = (_("read most often"), _("times"), _("conversations"))
        rows = [(row.path, str(row.reads), str(row.sessions)) for row in found.hot[:MOST_PATHS]]
        out.table([head, *rows])
        out.line(
            _(
                "What every task needs of these files belongs into AGENTS.md. A resumed conversation loads "
                "those that it read most before they are asked for."
            )
        )


def _compactions(out: Output, found: "Stats") -> None:
    if found.compactions:
        out.line()
    for row in found.compactions:
        text = _(
            "compactions by {policy}: {count}, which made contexts smaller by {tokens} tokens",
            count=row.count,
            policy=row.policy,
            tokens=thousands(row.saved_tokens),
        )
        out.line(text)
