"""Classing commands: what is called reading only reads, and every doubt is none."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.tools.classify import CHANGES_SHELL, Classified, Place, classify
from croze.tools.safe_commands import BUILTINS, COMMANDS
from croze.tools.shell_syntax import Script, read

SYSTEM = "/usr/local/bin:/usr/bin:/bin"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    root = tmp_path / "project"
    root.mkdir()
    (root / "src").mkdir()
    (root / "a.txt").write_text("a\n")
    return place_at(root)


def place_at(root: Path, search: str = SYSTEM) -> Place:
    top = os.path.realpath(root)

    def locate(path: str) -> str | None:
        real = os.path.realpath(os.path.join(top, path))
        if real == top:
            return "."
        return real[len(top) + 1 :] if real.startswith(top + "/") else None

    return Place(root=Path(top), search=search, locate=locate)


PLACE = Place(
    root=Path("/nowhere/project"), search=SYSTEM, locate=lambda path: path.strip("/") or "."
)


def of(command: str, place: Place = PLACE) -> Classified:
    return classify(command, place)


READING = [
    "ls",
    "ls -la src",
    "ls -la --color=never -- src",
    "cat a.txt",
    "cat -n a.txt src/b.txt",
    "head -20 a.txt",
    "head -n 5 a.txt",
    "tail -n -5 a.txt",
    "tail -n +3 a.txt",
    "wc -l a.txt",
    "grep -rn 'a.*b' src",
    "grep -e x a.txt",
    "grep -C 3 -i --include='*.py' x src",
    "find . -name '*.py' -type f -not -path './x/*'",
    "find . '(' -name a -o -name b ')' -size +10k -mtime -3 -print0",
    "sed -n '1,20p' a.txt",
    "sed -n '5p;7,$p' a.txt",
    "stat -c %s a.txt",
    "du -sh src",
    "df -h",
    "sort -k2,2 -t, -rn a.txt",
    "sort a.txt | uniq -c | sort -rn | head",
    "cut -d ' ' -f 1 a.txt",
    "tr a-z A-Z",
    "diff -u a.txt src/b.txt",
    "basename src/a.py .py",
    "pwd",
    "echo hello && pwd",
    "echo 'a $(b) `c`'",
    "printf '%s %5d%%\\n' a 5",
    "which ls",
    "command -v python3",
    "type ls",
    "test -f a.txt && cat a.txt",
    "true; false || true",
    "uname -a",
    "date +%Y",
    "date -u -d yesterday +%s",
    "cat a.txt 2>/dev/null | wc -l",
    "cd src && ls -la",
    "cd src && cat ../a.txt",
    "seq 1 10",
    "sha256sum a.txt",
    "id -u",
]


@pytest.mark.parametrize("command", READING)
def test_looking_round_only_reads(command: str) -> None:
    found = of(command)
    assert (found.kind, found.why) == ("read", "")


@pytest.mark.parametrize(
    "command",
    [
        # incident 12: options that run programs, write or delete
        "find . -exec rm x",
        "find . -execdir rm x",
        "find . -ok rm x",
        "find . -delete",
        "find . -fprint x",
        "find . -fprintf x y",
        "find . -fls x",
        "find -L . -name x",
        "find . -files0-from x",
        "xargs rm",
        "awk 'BEGIN{system(\"x\")}'",
        "sed -i s/a/b/ a.txt",
        "sed -n '1e x' a.txt",
        "sed -n 1wx a.txt",
        "sed 's/a/b/e' a.txt",
        "sed -n -f x a.txt",
        "sort -o x a.txt",
        "sort -ox a.txt",
        "sort -ro x a.txt",
        "sort --output=x a.txt",
        "sort --compress-program=x a.txt",
        "sort -T x a.txt",
        "sort --files0-from=x",
        "uniq a.txt x",
        "rg --pre x a",
        "rg --pre=x a",
        "rg -z a",
        "rg -L a",
        "rg --hostname-bin x a",
        "rg --search-zip a",
        "rg -f /etc/passwd",
        "grep -f x a.txt",
        "grep -R x .",
        "wc --files0-from=x",
        "du --files0-from=x",
        "file -C -m x",
        "file -z a.txt",
        "file -f x",
        "tree -o x",
        "tree -R -H x -L 1",
        "diff -l a b",
        "diff -r a b",
        "diff --to-file=x a",
        "date -s x",
        "date 01010101",
        "tail -f a.txt",
        "md5sum -c x",
        "jq -f x a.json",
        "jq 'import \"x\" as y; .' a.json",
        "hostname x",
        "python x.py",
        "python -c 1",
        "python --version x",
        "node -e 1",
        "npm --version",
        "yarn --version",
        "cargo --version",
        "go version",
        "pytest --version",
        "make",
        "env ls",
        "nice ls",
        "timeout 1 ls",
        "nohup ls",
        "sudo ls",
        "busybox ls",
        "bash -c ls",
        "sh x",
        "tee x",
        "touch x",
        "mkdir x",
        "rm -rf /",
        "git push",
        # abbreviations and look-alikes of known options
        "sort --out x a.txt",
        "ls --recurs",
        "grep --file=x y",
        "ls --color=never --nope",
        "head --lines",
        # incident 13: programs by a path
        "/bin/ls",
        "./ls",
        "/tmp/cat a.txt",
        "../ls",
        # builtins that hand text on to be evaluated
        "printf -v x a",
        "printf '%n' 'a[$(x)]'",
        "printf '%*d' 1 2",
        "test -v 'a[$(x)]'",
        "command ls",
        "command -p ls",
        "cd -",
        "cd -P src",
        "cd",
    ],
)  # fmt: skip
def test_what_may_write_or_run_is_not_called_reading(command: str) -> None:
    """Incidents 8, 12 and 13."""
    found = of(command)
    assert found.kind != "read"
    assert found.why


@pytest.mark.parametrize("builtin", sorted(CHANGES_SHELL))
def test_what_changes_the_shell_asks_and_so_does_all_behind_it(builtin: str) -> None:
    """Incident 11."""
    found = of(f"{builtin} x; ls")
    assert found.kind != "read"
    if found.parts:
        assert all(part.why for part in found.parts)


def test_declarations_are_not_understood() -> None:
    """Incident 11."""
    for command in (
        "export PATH=/tmp/x; ls",
        "declare -x A=b; ls",
        "A=b ls",
        "local a",
        "unset PATH",
    ):
        found = of(command)
        assert found.kind == "execute"
        assert not found.parts


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("curl http://x", "network"),
        ("true;" * 60 + "curl http://x", "network"),
        ("/usr/bin/wget x", "network"),
        ("nslookup a.evil.com", "network"),
        ("dig a.evil.com", "network"),
        ("ping -c 1 a.evil.com", "network"),
        ("host a.evil.com", "network"),
        ("git fetch", "network"),
        ("git -C x push origin", "network"),
        ("npm install x", "network"),
        ("pip install x", "network"),
        ("npm test", "execute"),
        ("make", "execute"),
        ("ls", "read"),
    ],
)
def test_what_reaches_out_is_told_apart(command: str, kind: str) -> None:
    """Incidents 9 and 26."""
    assert of(command).kind == kind


def test_one_part_is_enough_to_ask() -> None:
    """Incident 8: not only the first word counts."""
    for sign in (";", "&&", "||", "|", "\n"):
        found = of(f"ls {sign} rm x")
        assert found.kind == "execute"
        assert [bool(part.why) for part in found.parts] == [False, True]


def test_paths_that_lead_out_ask(place: Place) -> None:
    outside = place.root.parent / "outside"
    outside.mkdir()
    (outside / "x").write_text("x")
    (place.root / "link").symlink_to(outside / "x")
    (place.root / "out").symlink_to(outside)
    for command in (
        "cat /etc/passwd",
        "cat ../outside/x",
        "cat src/../../outside/x",
        "ls ..",
        "ls /",
        "cat link",
        "ls out/",
        "cat out/x",
        "head -5 link",
        "grep -r x ..",
        "grep x /etc/passwd",
        "grep -e x /etc/passwd",
        "find / -name x",
        "find . -newer /etc/passwd",
        "diff a.txt link",
        "cd .. && ls",
        "cd out && cat x",
        "cd src && cat ../../outside/x",
        "cd src; cat x",
        "cd nowhere && true; cat ../a.txt",
        "cd src && true\ncat ../a.txt",
        "cd src && true || cat ../a.txt",
        "cd deep/.. && cat ../a.txt",
        "cd src || cat x",
        "ls | cd src && cat x",
        "ls && cd src && cat x",
    ):
        assert of(command, place).kind == "execute", command
    for command in (
        f"cat {place.root}/a.txt",
        f"cd {place.root} && cat a.txt",
        "cat src/../a.txt",
        "grep -rn /etc/passwd src",
        "cat /dev/null",
    ):
        assert of(command, place).kind == "read", command


def test_files_that_may_hold_secrets_ask(place: Place) -> None:
    (place.root / ".env").write_text("KEY=x")
    (place.root / "plain").symlink_to(".env")
    for command in (
        "cat .env",
        "cat ./src/../.env",
        "grep KEY .env",
        "cat plain",
        "head -1 id_rsa",
        "cat a.pem",
    ):
        assert "secrets" in of(command, place).why, command
    assert of("cat .env.example", place).kind == "read"


def test_folders_are_compared_by_question_since_links_in_them_are_followed(place: Place) -> None:
    assert of("diff src src", place).kind == "execute"
    assert of("diff a.txt a.txt", place).kind == "read"


def program(folder: Path, name: str = "ls") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return folder


def test_a_program_has_to_be_one_that_nobody_else_can_put_there(
    place: Place, tmp_path: Path
) -> None:
    """Incident 13: the name alone says nothing."""
    inside = program(place.root / "bin")
    shared = program(tmp_path / "shared")
    shared.chmod(0o777)
    for first in (str(inside), "bin", ".", "", str(shared)):
        found = of("ls", place_at(place.root, f"{first}:{SYSTEM}"))
        assert found.kind == "execute", first
    assert of("ls", place_at(place.root, f"/nonexistent:{SYSTEM}")).kind == "read"
    assert of("ls", place_at(place.root, f"{place.root}/src:{SYSTEM}")).kind == "read"
    assert "not on PATH" in of("ls", place_at(place.root, "/nonexistent")).why


def test_a_link_on_path_into_the_workspace_is_not_trusted(place: Place) -> None:
    inside = program(place.root / "bin")
    folder = place.root.parent / "links"
    folder.mkdir()
    (folder / "ls").symlink_to(inside / "ls")
    assert of("ls", place_at(place.root, f"{folder}:{SYSTEM}")).kind == "execute"


def test_builtins_need_no_path() -> None:
    bare = Place(root=Path("/nowhere"), search="", locate=lambda path: path)
    assert of("echo a && pwd && true", bare).kind == "read"
    assert set(COMMANDS) >= BUILTINS


GIT = """[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
[remote "origin"]
\turl = https://example.org/a/b.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
\tremote = origin
\tmerge = refs/heads/main
"""


def repository(root: Path, config: str = GIT) -> Path:
    git = root / ".git"
    for name in ("objects", "refs", "hooks"):
        (git / name).mkdir(parents=True, exist_ok=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "config").write_text(config)
    return git


GIT_READING = [
    "git status",
    "git status --short --branch",
    "git --no-pager log --oneline -10",
    "git log -p --stat -- src",
    "git log --format='%h %s' --since=yesterday main..HEAD",
    "git diff HEAD~1 --name-only",
    "git diff --cached -U5",
    "git show HEAD:a.txt",
    "git branch -a",
    "git branch --show-current",
    "git remote -v",
    "git rev-parse --abbrev-ref HEAD",
    "git ls-files -o --exclude-standard",
    "git blame -L 1,5 a.txt",
    "git grep -n x",
    "git stash list",
    "git config --get user.name",
    "git tag -l 'v*'",
    "git cat-file -p HEAD",
]
GIT_OTHER = [
    "git",
    "git -c core.fsmonitor=x status",
    "git -C src status",
    "git --git-dir=x status",
    "git --exec-path=x status",
    "git -p log",
    "git diff --ext-diff",
    "git diff --output=x",
    "git diff --no-index /etc/passwd a.txt",
    "git diff a.txt /etc/passwd",
    "git log --output=x",
    "git log --textconv",
    "git log --show-signature",
    "git log --format=%G?",
    "git show --ext-diff",
    "git grep -Ox y",
    "git grep --open-files-in-pager=x y",
    "git branch new",
    "git branch -D main",
    "git tag v1",
    "git tag -d v1",
    "git remote add x y",
    "git remote show origin",
    "git remote update",
    "git stash",
    "git stash pop",
    "git config user.name x",
    "git config --global --edit",
    "git config --unset x",
    "git checkout .",
    "git reset --hard",
    "git clean -fd",
    "git commit -m x",
    "git add .",
    "git fetch",
    "git reflog expire --all",
    "git rebase -i",
    "git bisect run x",
    "git submodule foreach x",
    "git archive --output=x HEAD",
    "git cat-file --textconv HEAD:a",
    "git x",
]


def test_git_reads_freely_where_the_repository_names_no_programs(place: Place) -> None:
    repository(place.root)
    for command in GIT_READING:
        assert of(command, place).kind == "read", command
    for command in GIT_OTHER:
        assert of(command, place).kind != "read", command
    assert of(f"cd {place.root} && git status", place).kind == "read"
    assert of("cd src && git status", place).kind == "execute"


def test_git_asks_where_there_is_no_repository_of_the_workspace(place: Place) -> None:
    assert of("git status", place).kind == "execute"
    assert of("git --version", place).kind == "read"


@pytest.mark.parametrize(
    "lines",
    [
        "[core]\n\tfsmonitor = ./evil",
        "[core]\n\tfsmonitor = true",
        "[core]\n\thooksPath = evil",
        "[core]\n\tpager = evil",
        "[core]\n\tsshCommand = evil",
        "[core]\n\teditor = evil",
        "[core]\n\tworktree = /",
        "[core] fsmonitor = ./evil",
        "[CORE]\n\tfsmonitor = ./evil",
        '[filter "x"]\n\tclean = evil',
        '[filter "x"]\n\tprocess = evil',
        "[diff]\n\texternal = evil",
        '[diff "x"]\n\ttextconv = evil',
        '[diff "x"]\n\tcommand = evil',
        "[log]\n\tshowSignature = true",
        "[gpg]\n\tprogram = evil",
        "[pager]\n\tlog = evil",
        "[alias]\n\tx = !evil",
        "[include]\n\tpath = evil",
        '[includeIf "gitdir:/"]\n\tpath = evil',
        "[extensions]\n\tpartialClone = origin",
        "[extensions]\n\tworktreeConfig = true",
        '[remote "origin"]\n\tpromisor = true',
        '[remote "origin"]\n\tuploadpack = evil',
        '[remote "origin"]\n\turl = ext::sh -c evil',
        '[remote "origin"]\n\tvcs = evil',
        '[url "ext::sh -c evil"]\n\tinsteadOf = https',
        "[credential]\n\thelper = evil",
        '[submodule "x"]\n\turl = x',
        "[core]\n\tfilemode = true\\\n\tfsmonitor = evil",
        '[core "]\n\tfsmonitor = evil"]\n\tx = 1',
        "fsmonitor = evil",
        "[core]\n\tbare",
    ],
)
def test_a_repository_that_could_name_a_program_is_asked_about(place: Place, lines: str) -> None:
    """Incident 15."""
    repository(place.root, GIT + lines + "\n")
    for command in ("git status", "git log", "git diff", "git show"):
        assert of(command, place).kind == "execute"


def test_hooks_submodules_and_broken_repositories_are_asked_about(place: Place) -> None:
    git = repository(place.root)
    assert of("git status", place).kind == "read"
    (git / "index").write_bytes(b"DIRC" + bytes(20) + b"\x00\x00\xe0\x00" + bytes(20))
    assert "submodule" in of("git status", place).why
    (git / "index").write_bytes(b"DIRC" + bytes(40))
    assert of("git status", place).kind == "read"
    (git / "hooks" / "post-index-change").write_text("x")
    assert "hook" in of("git diff", place).why
    (git / "hooks" / "post-index-change").unlink()
    (git / "config").write_bytes(b"\xff\xfe")
    assert of("git status", place).kind == "execute"
    repository(place.root)
    (git / "HEAD").unlink()
    assert "not whole" in of("git status", place).why


def test_a_linked_work_tree_is_judged_by_the_common_configuration(
    place: Place, tmp_path: Path
) -> None:
    main = tmp_path / "main"
    main.mkdir()
    git = repository(main)
    linked = git / "worktrees" / "w"
    linked.mkdir(parents=True)
    (linked / "HEAD").write_text("ref: refs/heads/w\n")
    (linked / "commondir").write_text("../..\n")
    (place.root / ".git").write_text(f"gitdir: {linked}\n")
    assert of("git status", place).kind == "read"
    (git / "config").write_text(GIT + "[core]\n\tfsmonitor = x\n")
    assert of("git status", place).kind == "execute"


_SAFE = [
    "ls -la src",
    "cat a.txt",
    "grep -n x a.txt",
    "find . -name x",
    "head -5 a.txt",
    "echo a b",
]
_INSERTED = [
    "$(rm x)", "`rm x`", "\n", "\nrm x\n", ";rm x", "&rm x", "&&rm x", "||rm x", "|sh", ">x", ">>x", "<x",
    "2>x", ">|x", "$IFS", "${IFS}", "$x", "{a,b}", " ~", " *", "?", "[a]", "\\", " -exec rm x", " -delete",
    " -o x", " --pre x", " #", "#", "'", '"', "!", " <(rm x)", " >(rm x)", " <<E\nx\nE", "<<<x", "A=b ",
    "\t", "\r", "\x00", "\x1b", "\u00a0", "\u0430", "\u2028", "(", ")", "{", "}", "$'a'", '$"a"', "coproc ",
    "time ", "eval ", "exec ", "alias ls=rm;", "&>x", "|&sh", " ../x", " /etc/passwd", " .env",
]  # fmt: skip


@given(st.sampled_from(_SAFE), st.sampled_from(_INSERTED), st.data())
def test_nothing_that_is_inserted_leaves_a_command_free_but_plain_words(
    command: str, inserted: str, data: st.DataObject
) -> None:
    """Incidents 6, 10, 12 to 14. What stays free is made of known programs with words that stand in the
    text as they are; every other reading asks."""
    at = data.draw(st.integers(0, len(command)))
    changed = command[:at] + inserted + command[at:]
    if of(changed).kind != "read":
        return
    script = read(changed)
    assert isinstance(script, Script)
    for part in script.parts:
        assert part.argv[0] in COMMANDS
        assert not {"-exec", "-delete", "--pre", "-o", "sh", "rm"} & set(part.argv[:1])
        assert all(
            word in changed or word in changed.replace("'", "").replace('"', "")
            for word in part.argv
        )
    outside_quotes = "".join(changed.split("'")[::2]) if changed.count("'") % 2 == 0 else changed
    assert not set("$`\\!<(){}[]*?&#") & set(outside_quotes.replace("&&", "").replace('"', ""))


@given(st.text(max_size=60))
def test_any_text_is_classed(text: str) -> None:
    assert of(text).kind in ("read", "execute", "network")
