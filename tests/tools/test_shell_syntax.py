"""Taking commands apart: what is understood is what bash runs; everything else is not understood."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from croze.tools.shell_syntax import KEYWORDS, MOST, Opaque, Script, read

BASH = shutil.which("bash") or ""
needs_bash = pytest.mark.skipif(not BASH, reason="bash is not installed")

UNDERSTOOD = [
    "ls",
    "ls -la 'a b' \"c d\" x\"y\"'z'",
    "cat a | head -3 && echo b; pwd",
    "ls\npwd\n\nid -u",
    "ls &&\n pwd",
    "a || b && c | d",
    "cat a 2>/dev/null",
    "ls >/dev/null 2>&1",
    "ls &>/dev/null && pwd",
    "grep -rn 'foo $(x) `y` *' src",
    "echo 12 3.5 '' \"\" a=b ==c HEAD~1 HEAD^",
    "'time' x",
    "echo if then",
    "true;",
    "echo a:b,c+d@e%f/g_h-i.j",
]


@pytest.mark.parametrize("command", UNDERSTOOD)
def test_plain_commands_are_understood(command: str) -> None:
    assert isinstance(read(command), Script)


def test_words_are_what_the_shell_hands_over_and_operators_are_kept() -> None:
    script = read("cat 'a b'\"c\"d 2>/dev/null | wc -l && echo ''\nid")
    assert isinstance(script, Script)
    assert [(part.joined, part.argv) for part in script.parts] == [
        ("", ("cat", "a bcd")),
        ("|", ("wc", "-l")),
        ("&&", ("echo", "")),
        ("\n", ("id",)),
    ]
    assert script.parts[0].text == "cat 'a b'\"c\"d 2>/dev/null"


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("ls $(rm x)", "substitution"),
        ("ls `rm x`", "substitution"),
        ('ls "a$(rm x)"', "substitution"),
        ('ls "a`rm x`"', "substitution"),
        ("ls $HOME", "expansion"),
        ('ls "$HOME"', "expansion"),
        ("ls${IFS}-la", "expansion"),
        ("ls $IFS-la", "expansion"),
        ("ls $'\\x41'", "expansion"),
        ('ls $"a"', "expansion"),
        ("cat <(rm x)", "process substitution"),
        ("tee >(rm x)", "process substitution"),
        ("cat <<E\nx\nE", "here-document"),
        ("cat <<<x", "here-document"),
        ("cat <x", "takes input"),
        ("ls >x", "sends output"),
        ("ls >>x", "sends output"),
        ("ls >|x", "sends output"),
        ("ls 2>x", "sends output"),
        ("ls >/dev/null2", "sends output"),
        ("ls >/dev/null/../x", "sends output"),
        ("ls 3>&1", "sends output"),
        ("ls a2>/dev/null", "sends output"),
        ("ls &", "background"),
        ("ls & pwd", "background"),
        ("(ls)", "brackets"),
        ("{ ls; }", "brackets"),
        ("ls {a,b}", "brackets"),
        ("ls a{1..3}", "brackets"),
        ("f() { ls; }", "brackets"),
        ("ls *", "pattern"),
        ("ls a?", "pattern"),
        ("ls [ab]", "pattern"),
        ("[ -f x ]", "pattern"),
        ("ls ~", "~"),
        ("ls ~root", "~"),
        ("ls a=~", "~"),
        ("ls a:~", "~"),
        ("ls # x", "comment"),
        ("ls -e\\xec", "backslash"),
        ("ls \\\n-la", "backslash"),
        ('ls "a\\b"', "backslash"),
        ('ls "a!b"', "!"),
        ("! ls", "!"),
        ("A=b ls", "variable"),
        ("PATH=/tmp ls", "variable"),
        ("A+=b ls", "variable"),
        ("time ls", "word time"),
        ("ls | time wc", "word time"),
        ("if true; then ls; fi", "word if"),
        ("while ls", "word while"),
        ("function f", "word function"),
        ("coproc ls", "word coproc"),
        ("export A=b", "changes the shell"),
        ("declare -x A", "changes the shell"),
        ("unset PATH", "changes the shell"),
        ("ls 'a\nb'", "several lines"),
        ("ls 'a", "without an end"),
        ("ls\tx", "don't print"),
        ("ls\rpwd", "don't print"),
        ("ls\x00x", "don't print"),
        ("ls\x1b[2J", "don't print"),
        ("ls \u00e9", "not ASCII"),
        ("l\u0455", "not ASCII"),
        ("ls\u2028rm x", "not ASCII"),
        ("ls\u00a0x", "not ASCII"),
        ("ls ;; pwd", "one way"),
        ("ls | | pwd", "one way"),
        ("ls &&", "one way"),
        ("| ls", "one way"),
        ("", "empty"),
        (" \n ", "empty"),
        ("a" * (MOST + 1), "too long"),
    ],
)
def test_what_a_shell_reads_otherwise_is_not_understood(command: str, why: str) -> None:
    found = read(command)
    assert isinstance(found, Opaque)
    assert why in found.why


def test_no_count_of_parts_hides_the_last_one() -> None:
    """Incident 9."""
    script = read("true;" * 60 + "curl x")
    assert isinstance(script, Script)
    assert len(script.parts) == 61
    assert script.parts[-1].argv == ("curl", "x")


@pytest.mark.parametrize(
    "command",
    [
        "(" * 500_000,
        "$(" * 300_000,
        "{ " * 300_000,
        "'" * 1_000_001,
        '"' * 1_000_001,
        "a|" * 24_000 + "a",
        "a&&" * 16_000 + "a",
        "a\n" * 24_000,
        "ls " + "'a'\"b\"" * 8_000,
        "<<E\n" * 200_000,
        "\\" * 1_000_000,
        "a b" * 400_000,
        "if " * 16_000,
        "\ud800" * 100,
    ],
)
def test_hostile_commands_neither_crash_nor_hang(command: str) -> None:
    assert isinstance(read(command), Script | Opaque)


# What bash itself makes of a command: every program that it would look for on PATH ends in this handler.
_HANDLER = (
    "command_not_found_handle() { \\printf '%s\\0' \"$@\" >&7; \\printf '\\1' >&7; return 0; }\n"
)


def bash_argvs(command: str, folder: Path) -> list[tuple[str, ...]]:
    """The words of each program that bash would start for `command`, in order (of a pipeline's parts in
    any). No program is found: PATH is empty, so that the handler gets all of them."""
    out = folder / "argv"
    script = folder / "script"
    script.write_text(f"{_HANDLER}PATH=/nonexistent\n{command}\n")
    with out.open("wb") as file:
        subprocess.run(
            [BASH, "-c", f"exec 7>'{out}'; . '{script}'"],
            cwd=folder,
            env={},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
        file.flush()
    entries = out.read_bytes().split(b"\1")[:-1]
    return [tuple(word.decode() for word in each.split(b"\0")[:-1]) for each in entries]


_WORD = st.one_of(
    st.text("abcXYZ0129_@%+=:,./^~-", min_size=1, max_size=6),
    st.text(' abc$`*?!#&|;<>(){}[]\\"~', max_size=6).map(lambda text: f"'{text}'"),
    st.text(" abc'*?#&|;<>(){}[]~", max_size=6).map(lambda text: f'"{text}"'),
)
_WORDS = st.lists(st.lists(_WORD, min_size=1, max_size=3).map("".join), min_size=0, max_size=3)
_COMMAND = st.tuples(st.sampled_from(["prog", "pr0g-x", "'pr og'", 'p"r"og', "x.y"]), _WORDS).map(
    lambda parts: " ".join([parts[0], *parts[1]])
)
_SCRIPT = st.lists(
    st.tuples(_COMMAND, st.sampled_from([";", "&&", "\n", " ; ", " && ", " 2>/dev/null;", ";\n"])),
    min_size=1,
    max_size=3,
).map(lambda parts: "".join(text for part in parts for text in part).rstrip("&; \n"))


@needs_bash
@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(_SCRIPT)
@example("prog a=~ b")
@example("prog 'a'b\"c\" ~ x~ ^")
@example("prog =x a:~")
def test_the_words_are_those_that_bash_hands_over(tmp_path: Path, command: str) -> None:
    script = read(command)
    if isinstance(script, Opaque):
        return
    assert bash_argvs(command, tmp_path) == [part.argv for part in script.parts]


@needs_bash
@pytest.mark.parametrize("command", UNDERSTOOD)
def test_bash_reads_what_is_understood_without_a_complaint(command: str) -> None:
    done = subprocess.run([BASH, "-n", "-c", command], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


_INSERTED = st.sampled_from(
    [
        "$(x)", "`x`", "\n", ";", "&", "&&", "||", "|", ">x", ">>x", "<x", "2>x", ">|x", "$IFS", "${x}",
        "$x", "{a,b}", "~", "*", "?", "[a]", "\\", "\\\n", "#", " #", "'", '"', "!", "<(x)", ">(x)",
        "<<E", "<<<x", "A=b ", "\t", "\r", "\x00", "\u00a0", "\u0430", "(", ")", "{", "}", "$'a'", '$"a"',
        "coproc ", "time ", "! ", "&>x", "|&", "=", "+=", "^", "%", "-exec",
    ]
)  # fmt: skip


@needs_bash
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.sampled_from(["prog -a b", "prog 'a b' c", 'prog "a" ; other x']), st.data())
def test_whatever_is_inserted_is_understood_as_bash_does_or_not_at_all(
    tmp_path: Path, command: str, data: st.DataObject
) -> None:
    """The parts may change: then as bash says, and never to words that bash would expand."""
    at = data.draw(st.integers(0, len(command)))
    changed = command[:at] + data.draw(_INSERTED) + command[at:]
    script = read(changed)
    if isinstance(script, Opaque):
        return
    mine = [part.argv for part in script.parts if part.joined != "||"]  # not run after a success
    theirs = bash_argvs(changed, tmp_path)
    if any(part.joined == "|" for part in script.parts):
        assert sorted(theirs) == sorted(mine)
    else:
        assert theirs == mine


def test_keywords_begin_no_program() -> None:
    for word in KEYWORDS:
        assert isinstance(read(f"{word} x"), Opaque)
