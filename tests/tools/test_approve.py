"""Approval: modes, rules, and what "always" and the flags offer."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from croze.tools.approve import NO_SANDBOX, Approver, Decision
from croze.tools.command_rules import NEVER_ALWAYS
from croze.tools.registry import builtin
from croze.tools.rule_syntax import RuleSet
from croze.types.agent import Mode, Sandbox
from croze.types.errors import ConfigError
from croze.types.parts import ToolCall
from croze.types.tool import Access, ToolResult, View

REGISTRY = builtin()


class Fetch:
    """A bound tool of the network, as MCP and web tools are."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def run(self, ctx: Any) -> ToolResult:
        return ToolResult(ok=True)

    def access(self) -> Access:
        return Access(net=True)

    def preview(self, ctx: Any) -> View:
        return View(title=self.url)


def decide(approver: Approver, name: str, **args: Any) -> Decision:
    call = REGISTRY.resolve(ToolCall("123456789", name, args))
    kind = REGISTRY.get(call.name)
    assert kind is not None
    bound = kind.bind(call.args)
    return approver.decide(call.name, bound.access(), call, bound)


def run(command: str, **rules: Any) -> Decision:
    return decide(Approver(**rules), "execute_command", command=command)


def write(path: str, **rules: Any) -> Decision:
    return decide(Approver(**rules), "write_to_file", path=path, content="x")


FREE = {"read": "allow", "todo": "allow", "talk": "allow", "look": "allow"}
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "read": ("read_file", {"path": "a"}),
    "todo": ("todo_write", {"action": "create", "content": "a"}),
    "talk": ("attempt_completion", {"result": "a"}),
    "write": ("write_to_file", {"path": "a", "content": "b"}),
    "look": ("execute_command", {"command": "ls"}),
    "exec": ("execute_command", {"command": "make"}),
}


@pytest.mark.parametrize(
    ("mode", "verdicts"),
    [
        (
            "plan",
            {**FREE, "write": "deny", "exec": "deny"},
        ),
        ("ask", {**FREE, "write": "ask", "exec": "ask"}),
        (
            "auto-edit",
            {**FREE, "write": "allow", "exec": "ask"},
        ),
        (
            "full",
            {**FREE, "write": "allow", "exec": "allow"},
        ),
    ],
)
def test_a_mode_decides_by_what_a_call_touches(mode: Mode, verdicts: dict[str, str]) -> None:
    approver = Approver(mode=mode)
    assert {
        what: decide(approver, name, **args).verdict for what, (name, args) in CALLS.items()
    } == verdicts


def test_no_rule_lifts_plan_mode() -> None:
    got = run("make", mode="plan", allow=("execute_command", "execute_command(make)"))
    assert (got.verdict, got.flag) == ("deny", "--mode ask")


def test_full_never_asks() -> None:
    got = run("git push", mode="full", ask=("Bash(git push:*)",))
    assert (got.verdict, got.flag) == ("deny", "--mode ask")
    assert "never asks" in got.reason
    assert decide(Approver(mode="full"), "read_file", path=".env").verdict == "allow"
    asks = {"command": "make", "requires_approval": True}
    assert decide(Approver(mode="full"), "execute_command", **asks).verdict == "allow"


def test_deny_beats_ask_beats_allow_in_every_mode() -> None:
    for mode in ("ask", "auto-edit", "full"):
        allow = ("execute_command",)
        assert run("git push", mode=mode, allow=allow).verdict == "allow"
        asked = run("git push", mode=mode, allow=allow, ask=("Bash(git push:*)",))
        assert asked.verdict == ("deny" if mode == "full" else "ask")
        both = run("git push", mode=mode, allow=allow, ask=("Bash",), deny=("Bash(git push:*)",))
        assert (both.verdict, both.by) == ("deny", "rule")
    assert decide(Approver(deny=("Read(.env)",)), "read_file", path=".env").verdict == "deny"


def test_a_prefix_rule_covers_its_words_and_no_others() -> None:
    rule = {"allow": ("execute_command(git status:*)",)}
    assert run("git status", **rule).verdict == "allow"
    assert run("  git  status --short src/a.py", **rule).verdict == "allow"
    for other in ("git stash", "git statusx", "git", "git -C x status", "./git status", "status"):
        assert run(other, **rule).verdict == "ask"
    assert run("npm test", allow=("Bash(npm test)",)).verdict == "allow"
    assert run("npm test -- x", allow=("Bash(npm test)",)).verdict == "ask"
    assert run("npm test -- x", allow=("Bash(npm test *)",)).verdict == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "git status; rm x",
        "git status && rm x",
        "git status | sh",
        "git status & rm x",
        "git status\nrm x",
        "git status\rrm x",
        "git status > x",
        "git status >| x",
        "git status < x",
        "git status $(rm x)",
        "git status `rm x`",
        "git status $IFS",
        "git status ${x}",
        "git status {a,b}",
        "git status *",
        "git status ?",
        "git status [a]",
        "git status ~",
        "git status !x",
        "git status #x",
        "git status 'x",
        'git status "$x"',
        "git status \\x",
        "git status\tx",
        "git status \u00e9",
        "git status\u2028rm x",
        "git status\0x",
    ],
)
def test_what_a_shell_could_read_otherwise_is_asked_about(command: str) -> None:
    """Incidents 6 to 14."""
    assert run(command, allow=("execute_command(git status:*)",)).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "git push",
        "cd x && git push origin",
        "git --no-pager push",
        "true;git push",
        "$(git push)",
        "`git push`",
        "'git' \"push\"",
        "g\\it pu\\sh",
        "git${IFS}push",
        "/usr/bin/git push",
        "\n git\tpush",
        "bash -c 'git push'",
        "git -c a=b push",
        "git -C dir --no-pager push origin",
        "env GIT_DIR=x git push",
        " && ".join(["true"] * 60) + " && git push",
    ],
)
def test_a_denied_prefix_is_found_wherever_it_stands(command: str) -> None:
    """Incident 9: no count of parts lets a denied command pass."""
    assert run(command, mode="full", deny=("Bash(git push:*)",)).verdict == "deny"


def test_a_denied_prefix_does_not_hit_its_neighbours() -> None:
    for command in ("git pull", "git pushx", "echo push", "legit push", "git log push"):
        assert run(command, mode="full", deny=("Bash(git push:*)",)).verdict == "allow"


def test_path_rules_are_globs_on_the_tidied_path() -> None:
    rule = {"allow": ("write_to_file(src/**)",)}
    for inside in ("src/a.py", "./src/b/c.py", "src/x/../a.py"):
        assert write(inside, **rule).verdict == "allow"
    for outside in (
        "a.py",
        "src/../a.py",
        "../src/a.py",
        "/src/a.py",
        "other/src/a.py",
        "src\\..\\a",
    ):
        assert write(outside, **rule).verdict == "ask"
    assert write("x/src/a.py", allow=("Write(*.py)",)).verdict == "allow"
    for path in ("a/.ENV", ".env", "x/../.env"):
        assert write(path, mode="full", deny=("Edit(.env)",)).verdict == "deny"


def test_path_rules_see_where_a_path_really_leads() -> None:
    """Incident 3: a link doesn't hide what it points to."""
    links = {"src/link": ".env", "src/out": None}

    def locate(path: str) -> str | None:
        return links.get(path, path)

    rules: dict[str, Any] = {"locate": locate, "mode": "full"}
    assert write("src/link", **rules, deny=("Edit(.env)",)).verdict == "deny"
    rules = {"locate": locate, "allow": ("Edit(src/**)",)}
    assert write("src/link", **rules).verdict == "ask"
    assert write("src/out", **rules).verdict == "ask"
    assert write("src/a", **rules).verdict == "allow"


@pytest.mark.parametrize(
    ("url", "allowed", "denied"),
    [
        ("https://ok.com/x", "allow", "deny"),
        ("https://api.OK.com", "allow", "deny"),
        ("https://evilok.com", "ask", "allow"),
        ("https://ok.com.evil", "ask", "allow"),
        ("https://evil\0.ok.com", "ask", "deny"),
        ("https://ok.com@evil.com", "ask", "allow"),
        ("nonsense", "ask", "deny"),
        ("http://[bad", "ask", "deny"),
    ],
)
def test_domain_rules_compare_whole_labels(url: str, allowed: str, denied: str) -> None:
    """Incident 28. What has no readable host counts as denied, never as allowed."""
    call, bound = ToolCall("123456789", "web_crawl", {"url": url}), Fetch(url)
    allow = Approver(allow=("WebFetch(domain:ok.com)",))
    assert allow.decide("web_crawl", Access(net=True), call, bound).verdict == allowed
    deny = Approver(mode="full", deny=("WebFetch(domain:ok.com)",))
    assert deny.decide("web_crawl", Access(net=True), call, bound).verdict == denied


def test_names_of_other_agents_stand_for_ours() -> None:
    assert run("x", allow=("Bash",)).verdict == "allow"
    assert write("a", allow=("Edit",)).verdict == "allow"
    assert write("a", allow=("write_*",)).verdict == "allow"
    assert write("a", allow=("replace_in_file",)).verdict == "ask"
    assert decide(Approver(ask=("Grep",)), "search_files", regex="x").verdict == "ask"


def test_the_model_may_ask_for_approval_but_not_do_without() -> None:
    approver = Approver(allow=("Bash(npm install:*)", "Bash(make a)"))

    def verdict(command: str, *, asks: bool) -> str:
        return decide(approver, "Bash", command=command, requires_approval=asks).verdict

    assert verdict("npm install x", asks=True) == "ask"
    assert verdict("npm install x", asks=False) == "allow"
    assert verdict("make a", asks=True) == "allow"  # this very command was allowed
    assert verdict("make b", asks=False) == "ask"


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("npm test -- --watch", "execute_command(npm test:*)"),
        ("npm run lint x", "execute_command(npm run lint:*)"),
        ("pytest -q tests/a.py", "execute_command(pytest:*)"),
        ("git status -s", "execute_command(git status:*)"),
        ("git commit", "execute_command(git commit)"),
        ("make test", "execute_command(make test)"),
        ("./run.sh all", "execute_command(./run.sh all)"),
        ("git push", ""),
        ("git -c core.fsmonitor=x status", ""),
        ("npm install x", ""),
        ("npm exec x", ""),
        ("uv run x", ""),
        ("FOO=1 pytest", ""),
        ("python3.11 -m pytest", ""),
        (".venv/bin/python -m pytest", ""),
        ("/bin/sh x", ""),
        ("sudo ls", ""),
        ("curl x", ""),
        ("xargs rm", ""),
        ("pytest && rm x", ""),
        ("pytest 'a b'", "execute_command(pytest:*)"),
        ("make 'a b'", ""),
        ("ls; make", "execute_command(make)"),
        ("cat a && npm test -x | head", "execute_command(npm test:*)"),
        ("make; make", "execute_command(make)"),
        ("git fetch", ""),
        ("export A=b", ""),
    ],
)
def test_always_offers_the_exact_rule_or_none(command: str, rule: str) -> None:
    got = run(command)
    assert got.rule == rule
    if rule:
        assert run(command, allow=(rule,)).verdict == "allow"


def test_always_is_never_offered_for_shells_interpreters_and_the_network() -> None:
    for program in NEVER_ALWAYS:
        for command in (program, f"{program} x", f"/usr/bin/{program} x", f"{program}3 x"):
            assert run(command).rule == "", command


def test_always_for_a_file_means_its_folder_and_globs_in_names_are_literal() -> None:
    for path, rule, other in [
        ("src/app/a.py", "write_to_file(/src/app/**)", "x/src/app/a.py"),
        ("a.py", "write_to_file(/a.py)", "b/a.py"),
        ("app/[id] (x)/p.tsx", "write_to_file(/app/\\[id\\] (x)/**)", "app/i (x)/p.tsx"),
    ]:
        got = write(path)
        assert got.rule == rule
        approver = Approver().with_rule(f"allow {got.rule}")
        assert decide(approver, "write_to_file", path=path, content="").verdict == "allow"
        assert decide(approver, "write_to_file", path=other, content="").verdict == "ask"
    assert write("../a").rule == write("/etc/a").rule == ""


def test_the_flag_that_is_named_allows_the_call() -> None:
    assert write("a").flag == "--mode auto-edit"
    assert run("npm test").flag == "--allow 'execute_command(npm test:*)'"
    assert run("sudo ls").flag == "--allow 'execute_command(sudo ls)'"
    assert run("ls && make").flag == "--allow 'execute_command(make)'"
    assert run("ls *").flag == "--allow 'execute_command(=ls *)'"
    assert decide(Approver(), "read_file", path=".env").flag == "--allow 'read_file(/.env)'"
    assert (
        decide(Approver(allow=("read_file(/.env)",)), "read_file", path=".env").verdict == "allow"
    )
    call = ToolCall("123456789", "web_crawl", {})
    assert (
        Approver().decide("web_crawl", Access(net=True), call, Fetch("x")).flag
        == "--allow web_crawl"
    )


@pytest.mark.parametrize(
    "command",
    [
        "a && b",
        "a\nb",
        "echo 'it''s' > x",
        "python x.py",
        "ls (x)",
        "ls *",
        "make :*",
        "=x",
        "#x",
        "!x",
        "make 'a  b'",
        "cat <<E\n  it's  \\ \t $x\nE",
        "echo \u00e9 \u2028 >x",
        "x" * 60_000,
    ],
)
def test_the_flag_is_one_line_that_a_shell_reads_as_a_rule_for_this_very_call(
    command: str, tmp_path: Path
) -> None:
    flag = run(command).flag
    assert "\n" not in flag
    assert " ".join(flag.split()) == flag
    script = tmp_path / "script"
    script.write_bytes(b"printf '%s\\0' " + flag.encode())
    printed = subprocess.run(["bash", script], capture_output=True, check=True, timeout=60).stdout
    words = printed.decode().split("\0")[:-1]
    assert set(words[::2]) == {"--allow"}
    assert run(command, allow=tuple(words[1::2])).verdict == "allow"
    assert run(f"{command} && touch y", allow=tuple(words[1::2])).verdict == "ask"


def test_a_new_rule_gives_a_new_approver() -> None:
    first = Approver(deny=("Bash(rm:*)",))
    second = (
        first.with_rule("allow execute_command").with_rule("ask Bash(git push)").with_rule("Edit")
    )
    assert first.allow == ()
    assert (second.allow, second.ask, second.deny) == (
        ("execute_command", "Edit"), ("Bash(git push)",), ("Bash(rm:*)",),
    )  # fmt: skip


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "(x)",
        "a b",
        "Bash(",
        "Bash(git * x)",
        "Edit(!a)",
        "Edit(#a)",
        "a*b",
        "Bash(a*b:*)",
        "Bash(make) @nowhere",
        "Bash(make) workspace",
    ],
)
def test_a_rule_that_cannot_be_read_is_an_error_that_shows_the_form(rule: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Approver(deny=(rule,))
    assert "execute_command(npm test:*)" in caught.value.hint


def test_each_part_of_a_command_has_to_be_covered_and_one_question_names_those_that_are_not() -> (
    None
):
    rules = {"allow": ("Bash(npm test:*)", "Bash(make lint)")}
    assert run("npm test && make lint | head -3", **rules).verdict == "allow"
    got = run("ls && npm test && make x; curl y", **rules)
    assert (got.verdict, got.kind) == ("ask", "network")
    assert [(part.text, bool(part.why)) for part in got.parts] == [
        ("ls", False),
        ("npm test", False),
        ("make x", True),
        ("curl y", True),
    ]
    assert got.rule == ""
    assert got.flag == "--allow 'execute_command(make x)' --allow 'execute_command(curl y)'"


def test_quotes_do_not_hide_a_program_from_a_rule() -> None:
    assert run("'npm' \"test\" x", allow=("Bash(npm test:*)",)).verdict == "allow"
    assert run("'npm test' x", allow=("Bash(npm test:*)",)).verdict == "ask"
    assert run("npm test 'x; rm y'", allow=("Bash(npm test:*)",)).verdict == "allow"


@pytest.mark.parametrize(
    ("rule", "given_in", "holds_in"),
    [
        ("Bash(make)", None, {"read-only", "workspace", "off"}),
        ("Bash(make) @off", "off", {"read-only", "workspace", "off"}),
        ("Bash(make) @workspace", "workspace", {"read-only", "workspace"}),
        ("Bash(make) @read-only", "read-only", {"read-only"}),
    ],
)
def test_an_allow_rule_holds_in_its_sandbox_and_tighter_ones(
    rule: str, given_in: Sandbox | None, holds_in: set[Sandbox]
) -> None:
    sandboxes: tuple[Sandbox, ...] = ("read-only", "workspace", "off")
    for now in sandboxes:
        got = run("make", allow=(rule,), sandbox=lambda now=now: now)
        assert (got.verdict == "allow") == (now in holds_in)
    if given_in:
        offered = run("make", sandbox=lambda: given_in).rule
        assert run("make", allow=(offered,), sandbox=lambda: given_in).verdict == "allow"


def test_a_deny_rule_holds_in_its_sandbox_and_looser_ones() -> None:
    deny = ("Bash(make) @workspace",)
    rules: dict[str, Any] = {"mode": "full", "deny": deny}
    assert run("make", **rules, sandbox=lambda: "read-only").verdict == "allow"
    assert run("make", **rules, sandbox=lambda: "workspace").verdict == "deny"
    assert run("make", **rules, sandbox=lambda: "off").verdict == "deny"


def test_without_a_sandbox_every_command_asks_but_what_a_rule_allows() -> None:
    got = run("ls", sandbox=lambda: None)
    assert (got.verdict, got.reason) == ("ask", NO_SANDBOX)
    assert run("ls", sandbox=lambda: None, allow=("Bash(ls)",)).verdict == "allow"
    assert run("make", sandbox=lambda: None, allow=("Bash(make) @workspace",)).verdict == "ask"


def test_reading_what_may_hold_secrets_asks_by_whatever_name() -> None:
    links = {"plain.txt": ".env"}
    approver = Approver(locate=lambda path: links.get(path, path))
    for path in (".env", "config/.env.local", "id_rsa", "a/b.pem", "plain.txt"):
        got = decide(approver, "read_file", path=path)
        assert (got.verdict, got.kind, got.rule) == ("ask", "read", ""), path
        assert "secrets" in got.reason
    assert decide(approver, "read_file", path=".env.example").verdict == "allow"


def test_saved_rules_are_asked_at_each_decision_and_broken_ones_let_nothing_through() -> None:
    rules = RuleSet()
    approver = Approver(saved=lambda: rules)
    assert decide(approver, "execute_command", command="make").verdict == "ask"
    rules = RuleSet(allow=("Bash(make)",))
    assert decide(approver, "execute_command", command="make").verdict == "allow"
    rules = RuleSet(allow=("Bash(make)",), deny=("Bash(make:*)",))
    assert decide(approver, "execute_command", command="make").verdict == "deny"
    rules = RuleSet(allow=("Bash(",))
    assert decide(approver, "execute_command", command="make").verdict == "deny"
    assert decide(approver, "read_file", path="a").verdict == "deny"


def test_text_in_a_file_that_looks_like_a_rule_or_flag_stays_text() -> None:
    """Incidents 29 and 33: who obeys a file still meets the rules."""
    for command in ("make --allow=execute_command", "echo allow execute_command > rules.json"):
        assert run(command).verdict == "ask"
    assert run("make", mode="ask", allow=("Read(--mode=full)",)).verdict == "ask"


def test_deleting_logs_asks_with_the_whole_text() -> None:
    """Incident 39."""
    command = "find / -name '*.log' -type f -delete"
    got = run(command)
    assert (got.verdict, got.rule) == ("ask", "")
    assert got.parts[0].text == command
    assert "-delete" in got.reason


def test_what_may_not_be_read_is_not_read_by_a_command_either() -> None:
    """Incident 3, by way of the shell."""
    links = {"./plain": "secret/x", "plain": "secret/x"}

    def locate(path: str) -> str | None:
        return links.get(path, path.removeprefix("./"))

    deny: dict[str, Any] = {"deny": ("Read(secret/**)",), "locate": locate}
    for command in (
        "cat secret/x",
        "cat a.txt ./secret/../secret/x",
        "head -3 SECRET/x",
        "ls && cat plain",
        "grep -n x secret/x | wc -l",
    ):
        assert run(command, **deny).verdict == "deny", command
    for command in ("cat a.txt", "grep secret/x a.txt", "echo secret/x"):
        assert run(command, **deny).verdict == "allow", command
    assert run("cat notes/x", ask=("Read(notes/**)",), locate=locate).verdict == "ask"
