"""search_files, find_files and list_files: bounded, sorted, and the same without ripgrep."""

import os

import pytest

from croze.tools.builtin.search import FindFiles, ListFiles, SearchFiles, rank
from croze.types.parts import ToolCall
from croze.workspace import search as engine


@pytest.fixture
def project(fake_context):
    tree = {
        ".gitignore": "*.log\nignored/\n!keep.log\n", "src/app.py": "import os\ndef main():\n    pass\n",
        "src/util.ts": "function Main() {}\n", "src/ignored/x.py": "def main(): 1\n", "a.log": "main\n",
        "keep.log": "main\n", "node_modules/m/index.js": "main()\n", ".github/ci.yml": "main: 1\n",
        ".hidden/x": "main\n", ".env": "main=secret\n", ".editorconfig": "main\n", "src/sub/.gitignore": "gen.py\n",
        "src/sub/gen.py": "main\n", "src/sub/own.py": "x\n",
    }  # fmt: skip
    for path, text in tree.items():
        target = fake_context.workspace.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    (fake_context.workspace.root / "data.bin").write_bytes(b"\0main\n")
    return fake_context


@pytest.fixture(params=["ripgrep", "python"])
def either(request, monkeypatch):
    """The test runs with ripgrep and without it."""
    if request.param == "python":
        monkeypatch.setattr(engine, "ripgrep", lambda _: None)
    return request.param


async def found(context, regex, **arguments):
    result = await SearchFiles(regex=regex, **arguments).run(context)
    assert result.ok, result
    return [(m["path"], m["line"]) for m in result.data["matches"]]


async def test_ignored_hidden_binary_and_env_files_are_passed_over(project, either):
    assert await found(project, r"\bmain\b") == [
        (".editorconfig", 1), (".github/ci.yml", 1), ("keep.log", 1), ("src/app.py", 2),
    ]  # fmt: skip


async def test_a_folder_or_file_that_is_named_is_searched_though_it_is_ignored(project, either):
    assert await found(project, "main", path="node_modules") == [("node_modules/m/index.js", 1)]
    assert await found(project, "main", path="src/ignored") == [("src/ignored/x.py", 1)]
    assert await found(project, "main", path="a.log") == [("a.log", 1)]
    assert await found(project, "main", path=str(project.workspace.root / "src/app.py")) == [
        ("src/app.py", 2)
    ]


async def test_globs_and_case_narrow_the_search(project, either):
    assert await found(project, "MAIN", case_sensitive=False, include="*.py, *.ts") == [
        ("src/app.py", 2), ("src/util.ts", 1),
    ]  # fmt: skip
    assert await found(project, "main", include="*.{py,yml}", exclude="src/**") == [
        (".github/ci.yml", 1)
    ]
    assert await found(project, "MAIN") == []


async def test_context_lines_are_shown_and_not_counted(project, either):
    result = await SearchFiles(regex="def main", path="src", context=1).run(project)
    assert result.text == "src/app.py\n1- import os\n2: def main():\n3-     pass"
    assert result.data["total"] == 1
    assert result.message.startswith("1 match of «def main» in 1 file")


async def test_many_matches_are_counted_and_the_first_by_path_shown(project, either):
    for name in ("b", "a", "c"):
        (project.workspace.root / f"src/{name}.txt").write_text("zebra\n" * 4_000)
    result = await SearchFiles(regex="zebra").run(project)
    assert result.data["total"] == 12_000
    assert [m["path"] for m in result.data["matches"]] == ["src/a.txt"] * 50
    assert [m["line"] for m in result.data["matches"]] == list(range(1, 51))
    assert "the first 50 shown" in result.truncated
    assert len(result.text) < 8_500


async def test_long_lines_are_shortened(project, either):
    (project.workspace.root / "min.js").write_text("needle" + "x" * 100_000 + "\n")
    result = await SearchFiles(regex="needle").run(project)
    assert len(result.text) < 700


async def test_no_match_is_no_error(project, either):
    result = await SearchFiles(regex="nowhere_at_all", path="src").run(project)
    assert (result.ok, result.text, result.data["total"]) == (True, "", 0)
    assert result.message.startswith("0 matches of «nowhere_at_all» in src")


@pytest.mark.parametrize("regex", ["(", "a{2,1}", "[z-a]"])
async def test_a_regex_that_is_none_is_told(project, either, regex):
    result = await SearchFiles(regex=regex).run(project)
    assert (result.ok, result.code) == (False, "bad_regex")
    assert result.text


async def test_look_around_is_refused_with_the_reason(project):
    result = await SearchFiles(regex="(?=main)").run(project)
    assert "look-around" in result.text
    assert "PCRE2" not in result.text


@pytest.mark.parametrize(
    "regex",
    [
        "(?=a)",
        "(?<!a)b",
        r"(a)\1",
        "(?P=n)",
        r"\p{L}",
        r"\z",
        r"\Z",
        r"\A",
        r"\B",
        r"\<a",
        "[[:alpha:]]",
        "[a&&b]",
        "a*+",
        "a{,3}",
        "(?x) a",
        r"\x41",
        "(?>a)",
    ],
)
async def test_without_ripgrep_what_the_two_syntaxes_do_not_share_is_refused(
    project, monkeypatch, regex
):
    monkeypatch.setattr(engine, "ripgrep", lambda _: None)
    result = await SearchFiles(regex=regex).run(project)
    assert (result.ok, result.code) == (False, "bad_regex"), result


@pytest.mark.parametrize(
    ("regex", "lines"),
    [
        ("(?i)DEF MAIN", 1), (r"^\s{4}\w+$", 3), ("(?:x|imp)ort", 1), (r"(?P<n>d[aeiou]f) ", 2), (r"main\(\)", 2),
        (r"o[s]", 1), (r"[^\w\s]+?:", 2), ("pas{2}", 3), (r"\bos\b", 1), (r"m.*?n", 2),
    ],
)  # fmt: skip
async def test_both_searchers_find_the_same(project, either, regex, lines):
    matches = await found(project, regex, path="src/app.py")
    assert matches[0 if "DEF" not in regex else -1] == (
        "src/app.py",
        lines if "DEF" not in regex else 2,
    )


async def test_the_slow_search_says_so_and_runs_nothing_of_the_workspace(project, monkeypatch):
    monkeypatch.setattr(engine, "ripgrep", lambda _: None)
    for name in ("re.py", "json.py", "sitecustomize.py", "croze.py"):
        (project.workspace.root / name).write_text("open('pwned', 'w')\nraise SystemExit(3)\n")
    result = await SearchFiles(regex="def main").run(project)
    assert "ripgrep is not installed" in result.message
    assert result.data["total"] == 1
    assert not (project.workspace.root / "pwned").exists()


async def test_names_that_are_options_or_odd_are_searched(project, either):
    for name in ("-v", "--files", "a:3:b", "ü ñ"):
        (project.workspace.root / name).write_text("unicorn\n")
    expected = sorted(["-v", "--files", "a:3:b", "ü ñ"])
    assert [path for path, _ in await found(project, "unicorn")] == expected
    assert await found(project, "unicorn", path="-v") == [("-v", 1)]
    assert await found(project, "-v") == []


async def test_searching_outside_or_nowhere_is_a_result(project, either, tmp_path):
    (tmp_path / "secret.txt").write_text("main\n")
    (project.workspace.root / "out").symlink_to(tmp_path)
    for path in ("..", "out", "/etc"):
        assert (
            await SearchFiles(regex="main", path=path).run(project)
        ).code == "path_traversal_blocked"
    assert "secret.txt" not in str(await found(project, "main"))
    assert (await SearchFiles(regex="x", path="nope").run(project)).code == "file_not_found"


async def test_a_hostile_ripgrep_config_is_not_read(project, tmp_path):
    config = tmp_path / "rc"
    config.write_text("--pre=/bin/false\n")
    project.env = dict(project.env) | {"RIPGREP_CONFIG_PATH": str(config)}
    assert ("src/app.py", 2) in await found(project, "main")


def test_ripgrep_is_not_taken_from_a_relative_path_entry(project, monkeypatch):
    rg = project.workspace.root / "rg"
    rg.write_text("#!/bin/sh\n")
    rg.chmod(0o755)
    monkeypatch.chdir(project.workspace.root)
    assert engine.ripgrep({"PATH": ".:"}) != "./rg"


async def test_files_are_found_by_name_and_ranked(project, either):
    result = await FindFiles(pattern="app").run(project)
    assert result.text == "src/app.py"
    assert (await FindFiles(pattern="src py", limit=1).run(project)).data["files"] == ["src/app.py"]
    globbed = await FindFiles(pattern="src/**/*.py").run(project)
    assert globbed.data["files"] == ["src/app.py", "src/sub/own.py"]
    none = await FindFiles(pattern="qqqq").run(project)
    assert (none.ok, none.text, none.data["total"]) == (True, "", 0)


async def test_at_most_the_limit_is_shown_and_the_rest_counted(project, either):
    for number in range(30):
        (project.workspace.root / f"many{number:02}.txt").write_text("")
    result = await FindFiles(pattern="many").run(project)
    assert len(result.data["files"]) == 10
    assert result.data["total"] == 30
    assert "the best 10 shown" in result.truncated


def test_ranking_goes_from_the_name_itself_to_letters_in_order():
    paths = [
        "lib/configure.py",
        "config.py",
        "src/my_config.py",
        "config/x.py",
        "c/o/n/f/i/g",
        "other.py",
    ]
    assert rank("config", paths) == [
        "config.py",
        "lib/configure.py",
        "src/my_config.py",
        "config/x.py",
        "c/o/n/f/i/g",
    ]
    assert rank("*.py", ["a/b.py", "a.py", "a.txt"]) == ["a.py", "a/b.py"]
    assert rank("[", ["["]) == []


def test_of_files_that_fit_alike_those_near_to_touched_ones_come_first():
    paths = ["app/config.py", "lib/deep/down/config.py", "lib/deep/config.py", "zoo/config.py"]
    assert rank("config.py", paths) == [
        "app/config.py", "zoo/config.py", "lib/deep/config.py", "lib/deep/down/config.py",
    ]  # fmt: skip
    near = rank("config.py", paths, ["lib/deep/down/other.py"])
    assert near == [
        "lib/deep/down/config.py", "lib/deep/config.py", "app/config.py", "zoo/config.py",
    ]  # fmt: skip
    assert rank("**/config.py", paths, ["zoo/x.py"])[0] == "zoo/config.py"
    assert rank("lib/deep/config.py", paths, ["zoo/x.py"])[0] == "lib/deep/config.py"


async def test_what_the_session_has_seen_moves_its_neighbours_up(project):
    for path in ("a/same.py", "z/same.py"):
        (project.workspace.root / path).parent.mkdir()
        (project.workspace.root / path).write_text("")
    (project.workspace.root / "z/seen.py").write_text("")
    assert (await FindFiles(pattern="same").run(project)).data["files"][0] == "a/same.py"
    project.hashes["z/seen.py"] = "0" * 64
    assert (await FindFiles(pattern="same").run(project)).data["files"][0] == "z/same.py"


async def test_binary_files_that_match_are_counted_in_the_message(project, either):
    result = await SearchFiles(regex="def main").run(project)
    assert "binary" not in result.message
    result = await SearchFiles(regex="main").run(project)
    assert " and in 1 binary file" in result.message
    assert "data.bin" not in result.text


async def test_a_search_that_was_stopped_says_so(project, monkeypatch):
    monkeypatch.setattr(engine, "ripgrep", lambda _: None)
    monkeypatch.setattr(engine, "SECONDS", 1.0)
    (project.workspace.root / "evil.txt").write_text("a" * 60 + "!\n")
    result = await SearchFiles(regex="(a+)+$", path="evil.txt").run(project)
    assert result.ok
    assert result.message.startswith("at least 0 matches")
    assert "(the search was stopped after" in result.message
    assert result.data["complete"] is False


async def test_a_glob_that_is_none_is_told_as_such(project):
    for include in ("[", "src/["):
        result = await SearchFiles(regex="main", include=include).run(project)
        assert (result.ok, result.code) == (False, "bad_glob"), result
        assert "[" in result.text


async def test_a_glob_that_means_nothing_is_told_without_ripgrep_too(project, monkeypatch):
    monkeypatch.setattr(engine, "ripgrep", lambda _: None)
    result = await SearchFiles(regex="main", exclude="!").run(project)
    assert (result.ok, result.code) == (False, "bad_glob"), result


async def test_an_empty_regex_is_refused(project, either):
    result = await SearchFiles(regex="").run(project)
    assert (result.ok, result.code) == (False, "bad_regex")
    assert "say what to look for" in result.text


async def test_a_folder_is_drawn_as_a_tree(project):
    result = await ListFiles().run(project)
    assert result.text == (
        "./\n├── .github/\n├── src/\n├── .editorconfig\n├── .gitignore\n├── data.bin\n└── keep.log"
    )
    assert result.data == {"success": True, "tree_visualization": result.text}
    assert result.message == ".: 2 folders, 4 files."


async def test_recursion_goes_to_the_depth_and_obeys_nested_ignore_files(project):
    deep = await ListFiles(path="src", recursive=True).run(project)
    assert (
        deep.text == "src/\n├── sub/\n│   ├── .gitignore\n│   └── own.py\n├── app.py\n└── util.ts"
    )
    assert (
        await ListFiles(path="src", depth=1).run(project)
    ).text == "src/\n├── sub/\n├── app.py\n└── util.ts"


async def test_an_ignored_folder_that_is_named_is_listed(project):
    result = await ListFiles(path="node_modules", recursive=True).run(project)
    assert result.text == "node_modules/\n└── m/\n    └── index.js"
    assert "x.py" in (await ListFiles(path="src/ignored").run(project)).text


async def test_large_trees_are_cut_upper_names_first(project):
    for number in range(500):
        (project.workspace.root / f"deep/{number % 5}/f{number:03}.txt").parent.mkdir(
            parents=True, exist_ok=True
        )
        (project.workspace.root / f"deep/{number % 5}/f{number:03}.txt").write_text("")
    result = await ListFiles(recursive=True, depth=9).run(project)
    assert "keep.log" in result.text
    assert "left out" in result.truncated
    assert len(result.text) <= 8_000


async def test_links_and_odd_names_are_drawn_safely_and_not_followed(fake_context):
    root = fake_context.workspace.root
    (root / "loop").symlink_to(".")
    (root / "a\nb\x1b[31m").write_text("")
    os.mkfifo(root / "pipe")
    (root / os.fsdecode(b"caf\xe9")).write_text("")
    result = await ListFiles(recursive=True).run(fake_context)
    result.text.encode()
    assert result.text == "./\n├── a�b�[31m\n├── caf�\n├── loop (link)\n└── pipe (special)"


async def test_listing_a_file_or_nothing_is_a_result(project):
    assert (await ListFiles(path="src/app.py").run(project)).code == "not_a_folder"
    assert (await ListFiles(path="nope").run(project)).code == "file_not_found"
    (project.workspace.root / "empty").mkdir()
    assert (await ListFiles(path="empty").run(project)).message == "empty is empty."


async def test_invalid_lines_in_a_gitignore_cost_only_themselves(fake_context):
    root = fake_context.workspace.root
    (root / ".gitignore").write_text("!\n*.tmp\n")
    (root / "a.tmp").write_text("")
    (root / "b").write_text("")
    assert (await ListFiles().run(fake_context)).text == "./\n├── .gitignore\n└── b"


def test_the_two_forms_of_the_fixed_list_agree():
    from croze.workspace.ignore import EXCLUDED_FOLDERS, RULES_FILE, SHOWN_HIDDEN

    with open(RULES_FILE) as stream:
        rules = {line.strip().rstrip("/") for line in stream if not line.startswith("#")}
    assert {name for name in EXCLUDED_FOLDERS if not name.startswith(".")} <= rules
    assert {f"!{name}" for name in SHOWN_HIDDEN} <= rules


async def test_digests_are_short(project):
    call = ToolCall("1", "x")
    (project.workspace.root / "z.txt").write_text("zebra\n" * 50)
    searched = await SearchFiles(regex="zebra").run(project)
    assert SearchFiles.digest(call, searched).split("\n")[1:] == [
        f"z.txt:{n}: zebra" for n in range(1, 6)
    ]
    assert FindFiles.digest(call, await FindFiles(pattern="app").run(project)).endswith(
        "src/app.py"
    )
    assert ListFiles.digest(call, await ListFiles().run(project)).startswith(".: 2 folders")
