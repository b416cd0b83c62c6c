"""`croze permissions`: which rules hold, changing them, and trying them on a command or a past session."""

from typing import TYPE_CHECKING, Any

import click

from croze.text.display import one_line, safe
from croze.types.errors import UsageError
from croze.ui.cli.exits import Exit
from croze.ui.cli.framework import Command, LazyGroup, Pick
from croze.ui.cli.options import MODES
from croze.ui.cli.state import State, pass_state
from croze.ui.cli.with_app import with_app, write_json
from croze.ui.i18n import _, mark
from croze.ui.reasons import reason, why

if TYPE_CHECKING:
    from collections.abc import Callable

    from croze.app.app import App
    from croze.app.permissions import Simulated, Simulation, Tested, Trial

ASK, DENY = 10, 11
"""Exit codes of `test`, beside 0 for what is allowed."""

_EFFECTS = ("allow", "ask", "deny")
_JSON = click.option("--json", "as_json", is_flag=True, help=mark("Print values for programs."))
_EFFECT = click.argument("effect", type=Pick(_EFFECTS))
_TRIAL = (
    click.option("--allow", multiple=True, metavar="RULE", help=mark("Try with this rule too.")),
    click.option("--ask", multiple=True, metavar="RULE", help=mark("Try with this rule too.")),
    click.option("--deny", multiple=True, metavar="RULE", help=mark("Try with this rule too.")),
    click.option("--mode", type=Pick(MODES), help=mark("Try in this mode.")),
    click.option(
        "--sandbox", type=Pick(("read-only", "workspace", "off")), help=mark("Try in this sandbox.")
    ),
    click.option(
        "--alone", is_flag=True, help=mark("Only the rules of this command line, none that are kept.")
    ),
)  # fmt: skip


def _trial_options(command: "Callable[..., Any]") -> "Callable[..., Any]":
    for option in reversed(_TRIAL):
        command = option(command)
    return command


def _trial(given: dict[str, Any]) -> "Trial":
    from croze.app.permissions import Trial

    return Trial(**given)


@click.group(
    cls=LazyGroup,
    name="permissions",
    help=mark(
        "Show, change and try the rules of what may run without a question.\n\n"
        "A rule is a tool, or a tool with a pattern: execute_command(npm test:*), write_to_file(src/**), "
        "web_crawl(domain:x.org); names of other agents' tools (Bash, Edit, Read, WebFetch) work too. "
        "Deny beats ask beats allow."
    ),
)
def permissions() -> None:
    pass


@permissions.command("list", cls=Command, help=mark("List the rules that hold here."))
@_JSON
@pass_state
def list_rules(state: State, as_json: bool) -> int:
    from croze.app.permissions import rules

    found = rules(state.open().config)
    if as_json:
        return write_json(state, found)
    if not found:
        state.out.note(_("no rules are kept here; `croze permissions add` makes one"))
        return Exit.DONE
    rows = []
    for rule in found:
        note = "" if rule.known else _("(no tool of croze has this name)")
        rows.append((rule.effect, rule.rule, rule.source, note))
    state.out.table(rows)
    return Exit.DONE


@permissions.command(
    "add",
    cls=Command,
    help=mark(
        "Keep a rule, for this project or for all of them. Running sessions heed it at once.\n\n"
        "Example: croze permissions add allow 'execute_command(npm test:*)'"
    ),
)
@_EFFECT
@click.argument("rule")
@click.option("--user", "scope", flag_value="user", help=mark("For all projects."))
@click.option(
    "--project", "scope", flag_value="project", default=True, help=mark("For this project only.")
)
@_JSON
@pass_state
def add(state: State, effect: str, rule: str, scope: str, as_json: bool) -> int:
    from croze.app import permissions as app_permissions

    config = state.open().config
    new, path = app_permissions.add(config, _scope(scope), _effect(effect), rule)
    if as_json:
        return write_json(state, {"effect": effect, "rule": rule, "new": new, "path": str(path)})
    text = one_line(f"{effect} {rule}", 300)
    if new:
        state.out.note(_("{rule}: kept in {path}", rule=text, path=path))
    else:
        state.out.note(_("{rule}: was kept already in {path}", rule=text, path=path))
    if not app_permissions.is_known(rule, _effect(effect)):
        state.out.note(_("no tool of croze has this name; only a server's or a plugin's could"))
    return Exit.DONE


@permissions.command(
    "remove",
    cls=Command,
    help=mark("Drop a rule, as `list` shows it; from both files where neither is named."),
)
@click.argument("rule")
@click.option("--effect", type=Pick(_EFFECTS), help=mark("Only where it is of this kind."))
@click.option(
    "--user", "scope", flag_value="user", help=mark("Only from the rules for all projects.")
)
@click.option(
    "--project", "scope", flag_value="project", help=mark("Only from this project's rules.")
)
@_JSON
@pass_state
def remove(state: State, rule: str, effect: str | None, scope: str | None, as_json: bool) -> int:
    from croze.app import permissions as app_permissions

    config = state.open().config
    scopes = [_scope(scope)] if scope else [_scope("user"), _scope("project")]
    dropped = app_permissions.remove(config, scopes, _effect(effect) if effect else None, rule)
    if as_json:
        write_json(state, [{"effect": had, "path": str(path)} for had, path in dropped])
    if not dropped:
        raise UsageError(
            _("no rule {rule} is kept here", rule=repr(rule)),
            hint=_("`{command}` shows the rules", command="croze permissions list"),
            code="no_rule",
        )
    for had, path in dropped if not as_json else ():
        state.out.note(_("{rule}: dropped from {path}", rule=f"{had} {rule}", path=path))
    return Exit.DONE


@permissions.command(
    "test",
    cls=Command,
    help=mark(
        "Say what would happen to a command, and why: its parts, its class, the rule that decides. "
        "Nothing is run.\n\n"
        "Exit codes: 0 it would run without a question, 10 it would be asked about, 11 it would be refused."
    ),
)
@click.argument("subject")
@click.option(
    "--tool", default="execute_command", metavar="NAME",
    help=mark("Try a call of this tool, with SUBJECT as its path or address."),
)  # fmt: skip
@_trial_options
@_JSON
@pass_state
def test(state: State, /, subject: str, tool: str, as_json: bool, **given: Any) -> int:
    from croze.app.permissions import judge

    found = judge(state.open(), subject, _trial(given), tool=tool)
    if as_json:
        write_json(state, found)
    else:
        _show(state, found)
    return {"allow": int(Exit.DONE), "ask": ASK, "deny": DENY}[found.verdict]


def _verdicts() -> dict[str, str]:
    return {
        "allow": _("allowed, without a question"),
        "ask": _("asked about"),
        "deny": _("refused"),
    }


def _kinds() -> dict[str, str]:
    return {
        "read": _("reads"),
        "write": _("writes"),
        "execute": _("executes"),
        "network": _("uses the network"),
    }


def _show(state: State, found: "Tested") -> None:
    out = state.out
    for number, part in enumerate(found.parts, 1):
        said = why(part.why) if part.why else _("only reads")
        if part.allowed:
            said = _("{why}, but a rule allows it", why=said)
        out.line(f"  {number}. {one_line(part.text, 400)}")
        out.line(f"     {one_line(said, 400)}")
    if not found.understood:
        out.line("  " + _("not taken apart: the whole text counts"))
    out.line(_("class: {kind}", kind=_kinds()[found.kind]))
    out.line(_("verdict: {verdict}", verdict=_verdicts()[found.verdict]))
    out.line(_("because: {reason}", reason=one_line(reason(found.reason), 400)))
    if found.verdict != "allow" and found.flag:
        out.line(_("flag that allows it: {flag}", flag=safe(found.flag)))
    if found.rule:
        out.line(_("rule that `always` would keep: {rule}", rule=one_line(found.rule, 300)))


@permissions.command(
    "simulate",
    cls=Command,
    help=mark(
        "Judge the calls of past conversations again, by the rules that hold now and those given here: "
        "questions that would be saved, and what would run unasked. Nothing is run."
    ),
)
@click.argument("conversations", nargs=-1)
@_trial_options
@_JSON
@pass_state
def simulate(state: State, /, conversations: tuple[str, ...], as_json: bool, **given: Any) -> int:
    async def work(app: "App") -> "Simulation":
        from croze.app.permissions import simulate

        return await simulate(app, conversations, _trial(given))

    found = with_app(state, work)
    if as_json:
        calls = [_row(call) for call in found.calls]
        counts = {
            "sessions": found.sessions,
            "questions_then": found.questions_then,
            "questions_now": found.questions_now,
            "saved": sum(call.saved for call in found.calls),
            "risks": sum(call.risk for call in found.calls),
            "unread": found.unread,
        }
        return write_json(state, {**counts, "calls": calls})
    _show_simulation(state, found)
    return Exit.DONE


def _row(call: "Simulated") -> dict[str, Any]:
    import msgspec

    values: dict[str, Any] = msgspec.to_builtins(call)
    return {**values, "saved": call.saved, "risk": call.risk}


def _show_simulation(state: State, found: "Simulation") -> None:
    out = state.out
    out.line(
        _(
            "{calls} calls: {then} questions then, {now} now",
            calls=len(found.calls),
            then=found.questions_then,
            now=found.questions_now,
        )
    )
    groups = (
        (_("would run unasked:"), [call for call in found.calls if call.risk]),
        (
            _("questions saved:"),
            [call for call in found.calls if call.saved and not call.risk and call.now == "allow"],
        ),
        (
            _("would be asked about, and was not:"),
            [call for call in found.calls if call.now == "ask" and call.then != "ask"],
        ),
        (
            _("would be refused:"),
            [call for call in found.calls if call.now == "deny" and call.then != "deny"],
        ),
    )
    for title, calls in groups:
        if calls:
            out.line(title)
            _list(state, calls)
    if found.unread:
        out.note(_("{count} calls could not be judged again", count=found.unread))


def _list(state: State, calls: "list[Simulated]") -> None:
    """The same call once, with how often it came."""
    counts: dict[tuple[str, ...], int] = {}
    for call in calls:
        refused = _("(you said no)") if call.answer == "no" else ""
        key = (call.tool, one_line(call.subject, 120), refused, one_line(reason(call.reason), 120))
        counts[key] = counts.get(key, 0) + 1
    state.out.table([(f"  {count}×", *key) for key, count in counts.items()])


def _scope(scope: str | None) -> Any:
    return "user" if scope == "user" else "project"


def _effect(effect: str) -> Any:
    return effect
