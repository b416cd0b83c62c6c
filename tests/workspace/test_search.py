"""The searchers themselves: which lines are kept, the two searchers against each other, odd files."""

import os
import re
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from croze.workspace import grep, matches
from croze.workspace import search as engine
from croze.workspace.matches import Collector
from croze.workspace.paths import PathError
from croze.workspace.search import Query, search

RG = engine.ripgrep({})
"""The one that croze is installed with: ripgrep 13 has faults around Windows line ends."""


@pytest.fixture(params=["ripgrep", "python"])
def either(request, monkeypatch):
    """The test runs with ripgrep and without it."""
    if request.param == "python":
        monkeypatch.setattr(engine, "ripgrep", lambda _: None)


async def found(workspace, regex, path=".", **options):
    result = await search(workspace, Query(regex, path, **options), dict(os.environ))
    assert not result.error, result
    return result


def rows(result):
    return [(line.path, line.number, line.text) for line in result.lines if line.match]


PATHS = st.text("ab/\n:-5", min_size=1, max_size=6).filter(lambda p: not p.endswith(("/", "\n")))


@given(
    st.dictionaries(PATHS, st.lists(st.booleans(), min_size=1, max_size=12), max_size=8),
    st.randoms(use_true_random=False),
    st.integers(1, 40),
)
@settings(deadline=None)
def test_the_first_lines_are_kept_in_whatever_order_and_pieces_they_come(files, random, size):
    blocks, expected = [], []
    for path, kinds in files.items():
        block = f"./{path}\0" + "".join(
            f"{number}{':' if match else '-'}text {number}\n"
            for number, match in enumerate(kinds, 1)
        )
        blocks.append(block.encode())
        expected += [(path.encode(), number, match) for number, match in enumerate(kinds, 1)]
    random.shuffle(blocks)
    output = b"\n".join(blocks)
    collector = Collector()
    kept, gathered = matches.KEPT, matches.GATHERED
    matches.KEPT, matches.GATHERED = 7, random.choice([1, 30, gathered])
    try:
        for at in range(0, len(output), size):
            assert collector.feed(output[at : at + size])
            assert len(collector._rows) < 14
        lines = [(line.path.encode(), line.number, line.match) for line in collector.lines("")]
    finally:
        matches.KEPT, matches.GATHERED = kept, gathered
    assert lines == sorted(expected)[:7]
    assert collector.total == sum(match for _, _, match in expected)
    assert collector.files == sum(any(kinds) for kinds in files.values())


LITERALS = st.sampled_from(["a", "b", "é", "中", "1", "_", " ", r"\.", r"\-", "x", "A"])
CLASSES = st.sampled_from(
    [r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", ".", "[ab]", "[^ab]", "[a-x1]", r"[\w.]", r"[^\d]", "[]a]"]
)  # fmt: skip
EDGES = st.sampled_from([r"\b", "^", "$"])
ATOMS = LITERALS | CLASSES
REPEATED = st.builds(
    lambda atom, times, lazy: atom + times + lazy,
    ATOMS,
    st.sampled_from(["", "*", "+", "?", "{2}", "{1,2}", "{0,1}", "{2,}"]),
    st.sampled_from(["", "?"]),
).filter(lambda one: not one.endswith(("??",)) or "?" in one[:-1])
PATTERNS = st.recursive(
    st.lists(REPEATED | EDGES, min_size=1, max_size=4).map("".join),
    lambda inner: (
        st.builds("(?:{}|{})".format, inner, inner)
        | st.builds("({})?".format, inner)
        | st.builds("(?P<n>{})".format, inner)
        | st.builds("(?i:{})".format, inner)
    ),
    max_leaves=3,
)
LINES = st.lists(st.text("abxA1é中_ .-\t", max_size=10), min_size=1, max_size=12)


@given(PATTERNS, LINES, st.booleans(), st.integers(0, 2), st.sampled_from(["\n", "\r\n"]))
@settings(deadline=None, max_examples=150)
def test_both_searchers_find_the_same_lines_for_what_both_take(pattern, lines, ignore, around, end):
    data = end.join(lines).encode()
    if grep.beyond_common_syntax(pattern):
        return
    command = [RG, "--no-config", "--no-heading", "--line-number", "--crlf", "--color=never"]
    command += ["--no-context-separator", f"--context={around}", "--regexp", pattern, "-"]
    command += ["--ignore-case"] if ignore else []
    done = subprocess.run(command, input=data, capture_output=True, timeout=60, check=False)
    assert done.returncode in (0, 1), done.stderr
    own, binary = grep.matching(data, pattern, ignore_case=ignore, around=around)
    assert not binary
    theirs = done.stdout.removesuffix(b"\n").split(b"\n") if done.stdout else []
    assert [row.rstrip(b"\r") for row in own] == [row.rstrip(b"\r") for row in theirs]


@given(st.text(r"ab(|)[]{}?*+^$\.-12,dwsbP<>=!:i&~", max_size=8))
@settings(deadline=None, max_examples=200)
def test_what_the_slow_searcher_takes_of_any_pattern_ripgrep_understands_alike(pattern):
    if not pattern or grep.beyond_common_syntax(pattern):
        return
    data = b"ab\n12-b\na.b,\n<d> = w!\n\nbbb aaa\n"
    command = [
        RG,
        "--no-config",
        "--no-heading",
        "--line-number",
        "--crlf",
        "--regexp",
        pattern,
        "-",
    ]
    done = subprocess.run(command, input=data, capture_output=True, timeout=60, check=False)
    if done.returncode == 2:
        return
    own, _ = grep.matching(data, pattern, ignore_case=False, around=0)
    assert own == done.stdout.splitlines(), pattern


async def test_utf16_is_read_and_binary_files_are_only_counted(workspace, either):
    (workspace.root / "wide.txt").write_bytes("one\r\nneedle é\r\n".encode("utf-16"))
    (workspace.root / "be.txt").write_bytes(b"\xfe\xff" + "needle b\n".encode("utf-16-be"))
    (workspace.root / "latin.txt").write_bytes(b"caf\xe9 needle\n")
    (workspace.root / "data.bin").write_bytes(b"\0\1needle\n")
    result = await found(workspace, "needle")
    assert rows(result) == [
        ("be.txt", 1, "needle b"),
        ("latin.txt", 1, "caf� needle"),
        ("wide.txt", 2, "needle é"),
    ]
    assert (result.total, result.files, result.binary) == (3, 3, 1)


async def test_a_binary_file_alone_is_counted_without_an_error(workspace, either):
    (workspace.root / "data.bin").write_bytes(b"\0\1needle\n")
    for path in (".", "data.bin"):
        result = await found(workspace, "needle", path)
        assert (result.total, result.binary, result.lines) == (0, 1, ())


async def test_special_files_loops_and_closed_folders_are_passed_over(workspace, either):
    root = workspace.root
    os.mkfifo(root / "pipe")
    (root / "loop").symlink_to(".")
    (root / "null").symlink_to("/dev/zero")
    (root / "closed").mkdir()
    (root / "closed/x").write_text("needle\n")
    (root / "open").write_text("needle\n")
    (root / "closed").chmod(0)
    try:
        result = await found(workspace, "needle")
    finally:
        (root / "closed").chmod(0o700)
    assert ("open", 1, "needle") in rows(result)
    assert not {path for path, _, _ in rows(result)} - {"open", "closed/x"}  # root reads all
    with pytest.raises(PathError) as refused:
        await search(workspace, Query("x", "pipe"), dict(os.environ))
    assert refused.value.code == "not_a_file"


async def test_names_with_newlines_colons_and_dashes_come_back_whole(workspace, either):
    names = ["a\nb", "a\n\n1:x", "--pre=x", "-e", "3:4:x", "ü", "sub dir/\n"]
    for name in names:
        target = workspace.root / name
        target.parent.mkdir(exist_ok=True)
        target.write_text("one\nneedle\n\nneedle\n")
    result = await found(workspace, "needle", context=1)
    expected = sorted((name, number, "needle") for name in names for number in (2, 4))
    assert rows(result) == expected


async def test_a_name_that_is_no_unicode_is_shown_as_far_as_it_can_be(workspace):
    (workspace.root / os.fsdecode(b"caf\xe9")).write_text("needle\n")
    assert rows(await found(workspace, "needle")) == [("caf�", 1, "needle")]


async def test_matches_after_a_nul_far_into_a_file_are_not_shown(workspace):
    (workspace.root / "late.bin").write_bytes(b"needle\n" + b"x\n" * 100_000 + b"\0\nneedle\n")
    (workspace.root / "next").write_text("needle\n")
    result = await found(workspace, "needle")
    assert (result.total, result.binary) == (2, 1)
    assert rows(result) == [("late.bin", 1, "needle"), ("next", 1, "needle")]


async def test_windows_line_ends_are_no_part_of_a_line(workspace, either):
    (workspace.root / "dos.txt").write_bytes(b"one\r\ntwo\r\n")
    result = await found(workspace, "one$", context=1)
    assert [(line.number, line.text) for line in result.lines] == [(1, "one"), (2, "two")]


async def test_endless_backtracking_is_ended_with_what_was_found(workspace, monkeypatch):
    monkeypatch.setattr(engine, "ripgrep", lambda _: None)
    monkeypatch.setattr(engine, "SECONDS", 1.0)
    (workspace.root / "evil.txt").write_text("a" * 60 + "!\n")
    result = await found(workspace, "(a+)+$")
    assert (result.ended, result.complete, result.total) == ("timeout", False, 0)


async def test_an_empty_regex_is_refused(workspace, either):
    result = await search(workspace, Query(""), dict(os.environ))
    assert "empty" in result.error


@pytest.mark.parametrize("regex", ["=", "==", "-x", "--", "--files", "-e=a"])
async def test_a_regex_that_looks_like_an_option_is_one_all_the_same(workspace, either, regex):
    (workspace.root / "a.txt").write_text(f"one\n{regex}\ntwo\n")
    assert rows(await found(workspace, regex)) == [("a.txt", 2, regex)]


async def test_a_wrong_regex_is_told_with_its_place(workspace):
    result = await search(workspace, Query("ab(c"), dict(os.environ))
    assert re.search(r"ab\(c.*\n.*\^.*\n.*unclosed group", result.error)


async def test_ignored_folders_are_not_even_opened(workspace):
    """Seen from outside: the searcher's own trace tells which folders it enters."""
    for name in ("node_modules/m", "generated", "src"):
        (workspace.root / name).mkdir(parents=True)
        (workspace.root / name / "x.txt").write_text("needle\n")
    (workspace.root / ".gitignore").write_text("generated/\n")
    command = [RG, *engine._RG, *engine._RG_LINES, "--debug", "--regexp=needle", "--", "./"]
    command.remove("--no-messages")
    done = subprocess.run(
        command, cwd=workspace.root, capture_output=True, text=True, timeout=60, check=True
    )
    assert re.search(r"ignoring \S*node_modules\b", done.stderr)
    assert re.search(r"ignoring \S*generated\b", done.stderr)
    assert not re.search(r"node_modules/m|generated/x", done.stderr + done.stdout)
