"""Asking external tools for their help: real programs, well-behaved and hostile, in the sandbox."""

import asyncio
import os
import pwd
import shutil
import stat
import subprocess
from pathlib import Path

import msgspec
import pytest

from croze.knowledge import external_tools
from croze.knowledge.kept import KEPT
from croze.workspace.wrapper import Entrance
from tests.knowledge.tool_bench import Bench
from tests.sandboxes import need, running, until


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    need("bubblewrap")
    monkeypatch.setattr(external_tools, "SECONDS", 1.0)
    return Bench(tmp_path)


ANSWERS = {
    "a.py": ("import sys\nprint('Usage: a.py', *sys.argv[1:])\n", "python3"),
    "a.sh": ('echo "Usage: a.sh $1"\n', "bash"),
    "a.js": ("console.log('Usage: a.js', process.argv[2])\n", "node"),
    "a.pl": ('print "Usage: a.pl $ARGV[0]\\n";\n', "perl"),
    "a.rb": ("puts \"Usage: a.rb #{ARGV[0]}\"\n", "ruby"),
    "a.php": ('<?php echo "Usage: a.php $argv[1]\\n";\n', "php"),
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
async def test_scripts_in_every_language_are_asked_by_the_word_help(
    bench: Bench, name: str
) -> None:
    text, program = ANSWERS[name]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    tool = await bench.one(name, text, mode=0o644)
    assert (tool.help.text, tool.help.by) == (f"Usage: {name} help", "help")


async def test_a_rust_source_is_compiled_and_asked(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    bench.env |= {"RUSTUP_HOME": str(home / ".rustup"), "CARGO_HOME": str(home / ".cargo")}
    if (
        shutil.which("rustc") is None
        or subprocess.run(["rustc", "-V"], env=bench.env, capture_output=True).returncode
    ):
        pytest.skip("rustc is not installed")
    monkeypatch.setattr(external_tools, "SECONDS", 60.0)
    source = 'fn main() { println!("Usage: a.rs {}", std::env::args().nth(1).unwrap()); }\n'
    tool = await bench.one("a.rs", source, mode=0o644)
    assert (tool.help.text, tool.help.problem) == ("Usage: a.rs help", "")


async def test_a_compiled_program_without_suffix_is_asked(bench: Bench) -> None:
    program = Path("/bin/echo").read_bytes()
    tool = await bench.one("say", program)
    assert (tool.help.text, tool.help.by, tool.executable) == ("help", "help", True)


@pytest.mark.parametrize("word", ["help", "-h", "--help"])
async def test_the_three_words_are_tried_in_order(bench: Bench, word: str) -> None:
    tool = await bench.one("a.sh", f'[ "$1" = {word} ] && echo "by $1" || exit 2\n')
    assert (tool.help.text, tool.help.by) == (f"by {word}", word)


async def test_help_on_standard_error_counts(bench: Bench) -> None:
    assert (await bench.one("a.sh", "echo Usage >&2\n")).help.text == "Usage"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("exit 3\n", "exit code 3"),
        ("exit 0\n", "no output"),
        ("echo Usage; exit 1\n", "exit code 1"),
        ("echo Usage; kill -SEGV $$\n", "exit code 139"),
        ("while :; do :; done\n", "not done in 1 s"),
        ("yes Usage\n", "more than 1 MB"),
        ("trap '' TERM INT; sleep 60\n", "not done in 1 s"),
    ],
)
async def test_a_tool_that_fails_hangs_or_floods_is_told_and_its_comments_stand(
    bench: Bench, text: str, why: str
) -> None:
    tool = await bench.one("a.sh", f"#!/bin/sh\n# Usage: a\n\n{text}")
    assert (tool.help.text, tool.help.by) == ("Usage: a", "comments")
    assert tool.help.problem.startswith(f"it gives no help (help: {why}, -h: ")
    assert tool.usable


async def test_a_tool_that_wants_input_gets_none(bench: Bench) -> None:
    tool = await bench.one("a.sh", 'read -r line || echo "Usage: no input"\n')
    assert tool.help.text == "Usage: no input"


async def test_a_tool_that_takes_help_for_its_argument_changes_nothing(bench: Bench) -> None:
    outside = bench.home / "outside"
    outside.mkdir(parents=True)
    tool = await bench.one(
        "a.sh",
        f"touch made {outside}/made; echo x >> $0; rm -f other.txt; echo Usage\n",
    )
    bench.put(".croze/tools/other.txt", "x")
    assert tool.help.text.endswith("Usage")
    assert not (outside / "made").exists()
    assert sorted(os.listdir(bench.project / ".croze/tools")) == ["a.sh", "other.txt"]
    assert "echo x" in (bench.project / ".croze/tools/a.sh").read_text()
    assert not (bench.project / ".croze/tools/a.sh").read_text().endswith("x\nx\n")


async def test_a_tool_sees_no_keys_no_network_and_none_of_crozes_folders(bench: Bench) -> None:
    bench.env["ANTHROPIC_API_KEY"] = "secret-key"
    bench.put("~/.config/croze/keys.toml", "secret")
    tool = await bench.one(
        "a.sh",
        f"env; cat {bench.config}/keys.toml; "
        "python3 -c 'import socket; socket.create_connection((\"1.1.1.1\", 53), 1)' 2>&1 | tail -1\n",
    )
    assert tool.help.text
    assert "secret" not in tool.help.text
    assert "Error" in tool.help.text


async def test_the_users_own_tool_is_asked_in_its_folder_though_that_is_hidden(
    bench: Bench,
) -> None:
    bench.put("~/.config/croze/tools/a.sh", "cat data.txt; pwd\n")
    bench.put("~/.config/croze/tools/data.txt", "beside\n", mode=0o644)
    folder = bench.config / "tools"
    assert (await bench.all())["a.sh"].help.text == f"beside\n{folder}"


async def test_what_a_tool_leaves_running_is_ended(bench: Bench) -> None:
    mark = f"{os.getpid()}4242"
    tool = await bench.one("a.sh", f"sleep {mark} & (setsid sleep {mark} &) ; echo Usage\n")
    assert tool.help.text == "Usage"
    await until(lambda: not running(mark))


async def test_a_cancelled_asking_leaves_nothing_running(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(external_tools, "SECONDS", 60.0)
    mark = f"{os.getpid()}4343"
    bench.put(".croze/tools/a.sh", f"exec sleep {mark}\n")
    asking = asyncio.create_task(bench.all())
    await until(lambda: running(mark))
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await until(lambda: not running(mark))


async def test_a_known_help_is_not_asked_for_again_until_the_content_changes(bench: Bench) -> None:
    await bench.one("a.sh", "echo Usage: $(date +%N)\n")
    first = (await bench.all())["a.sh"].help
    assert bench.asked == 1
    assert (await bench.all())["a.sh"].help == first
    assert bench.asked == 1
    bench.put(".croze/tools/a.sh", "echo Usage: another\n")
    assert (await bench.all())["a.sh"].help.text == "Usage: another"


async def test_a_tool_without_help_is_not_asked_at_each_start_either(bench: Bench) -> None:
    await bench.one("a.sh", "exit 1\n")
    asked = bench.asked
    assert (await bench.all())["a.sh"].help.problem
    assert bench.asked == asked


async def test_the_cache_is_the_users_own_and_bounded_and_done_without_where_it_is_damaged(
    bench: Bench,
) -> None:
    await bench.one("a.sh", "echo Usage\n")
    file = bench.cache / "tools.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text("{damaged")
    assert (await bench.all())["a.sh"].help.text == "Usage"
    for number in range(KEPT + 5):
        bench.put(f"~/.config/croze/tools/{number}.sh", f"# Usage: {number}\n")
    bench.tools().look()
    bench.put(".croze/tools/b.sh", "echo Usage\n")
    tools = bench.tools()
    found = tools.look()
    await tools.ask([tool for tool in found if tool.file == "b.sh"])
    assert file.stat().st_size < 500_000
    assert file.read_text().count('"mark"') == KEPT


async def test_a_file_that_changes_while_it_is_asked_says_nothing(bench: Bench) -> None:
    bench.put(".croze/tools/a.sh", "sleep 0.5; echo Usage\n")
    tools = bench.tools()
    unasked = tools.unasked(tools.look())
    bench.put(".croze/tools/a.sh", "echo Usage: of another\n")
    await tools.ask(unasked)
    assert not any(tool.help.text for tool in tools.look())


async def test_without_a_sandbox_only_a_user_who_waived_it_has_tools_asked(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def none() -> tuple[bool, None]:
        return False, None

    bench.put(".croze/tools/a.sh", "# Usage: noted\necho Usage: asked\n")
    with monkeypatch.context() as patch:
        patch.setattr(bench, "_sandbox", none)
        assert (await bench.all())["a.sh"].help.text == "Usage: noted"
    bench.off = True
    assert (await bench.all())["a.sh"].help.text == "Usage: asked"


async def test_many_tools_are_asked_side_by_side_and_no_more_than_a_few(bench: Bench) -> None:
    for number in range(12):
        bench.put(f".croze/tools/{number}.sh", f"echo Usage {number}\n")
    tools = await bench.all()
    assert len(tools) == 12
    assert all(tool.help.text.startswith("Usage") for tool in tools.values())


async def test_the_weaker_sandbox_holds_a_tool_back_too(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = need("landlock")

    async def weaker() -> tuple[bool, Entrance | None]:
        policy = msgspec.structs.replace(bench.confinement.policy(), level="read-only")
        return True, found.wrapper(policy)

    monkeypatch.setattr(bench, "_sandbox", weaker)
    bench.put("~/.config/croze/keys.toml", "hidden-value")
    bench.put(
        "~/.config/croze/tools/a.sh",
        f"touch {bench.project}/made; cat ../keys.toml; echo more >>$0; echo Usage\n",
    )
    tool = (await bench.all())["a.sh"]
    assert tool.help.text.endswith("Usage")
    assert "hidden-value" not in tool.help.text
    assert not (bench.project / "made").exists()
    assert tool.path.read_text().count("more") == 1
