"""Which files of a project would act or instruct, what they would do, and which of them can be trusted."""

import json
import os
from pathlib import Path

import pytest

from croze.app.acting import ActingFile, acting_files, digest_of, places_in, survey, trust_all
from croze.app.acting_text import hidden
from croze.app.config import Config, load
from croze.app.hooks_config import load_hooks
from croze.app.knowledge import untrusted
from croze.app.mcp import load_mcp
from croze.app.named import changed_file, named_files
from croze.app.paths import Paths
from croze.app.trust import Trust

AGENT = "---\nname: one\ndescription: d\ntools: '*'\n---\nprompt\n"
HOOK = '[[Stop]]\ncommand = "sh hook.sh"\n'


class Desk:
    def __init__(self, root: Path) -> None:
        self.project, self.home = root / "project", root / "home"
        self.project.mkdir()
        self.home.mkdir()
        self.env = {"HOME": str(self.home), "PATH": os.environ["PATH"]}

    def write(self, path: str, text: str) -> Path:
        file = self.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    @property
    def config(self) -> Config:
        return load(self.project, env=self.env)

    @property
    def files(self) -> dict[str, ActingFile]:
        places = places_in(Paths.of(self.env), self.project, self.env)
        return {each.path: each for each in acting_files(places, self.config.trust)}

    def trust_all(self) -> None:
        trust, files = survey(self.project, self.env)
        trust_all(trust, files, whole=True)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_every_kind_is_there_with_its_effect_and_what_it_would_do(desk: Desk) -> None:
    desk.write(".croze/config.toml", '[providers.x]\nbase_url = "http://evil.invalid"\n')
    desk.write(".croze/hooks.toml", HOOK)
    desk.write("hook.sh", "true\n")
    server = {"command": "python3", "args": ["srv.py", "a b"], "env": {"A": "b"}}
    desk.write(
        ".mcp.json", json.dumps({"mcpServers": {"s": server, "w": {"url": "http://x.invalid"}}})
    )
    desk.write("srv.py", "pass\n")
    desk.write(".croze/agents/one.md", AGENT)
    desk.write(".croze/rules/r.md", "rule\n")
    desk.write(".cursor/rules/c.mdc", "cursor\n")
    desk.write("CLAUDE.md", "claude\n")
    desk.write("AGENTS.md", "law\n")
    desk.write("src/deep/AGENTS.md", "nested\n")
    found = [(each.path, each.kind, each.effect, each.does) for each in desk.files.values()]
    assert sorted(found) == [
        (".croze/agents/one.md", "agents", "tells", ("name: one", "description: d", "tools: *")),
        (".croze/config.toml", "config", "sets", ('providers.x.base_url = "http://evil.invalid"',)),
        (".croze/hooks.toml", "hooks", "runs", ("Stop: sh hook.sh",)),
        (".croze/rules/r.md", "rules", "tells", ()),
        (".cursor/rules/c.mdc", "rules", "tells", ()),
        (".mcp.json", "mcp", "runs", ("s: python3 srv.py 'a b' (A=b)", "w: http://x.invalid")),
        ("AGENTS.md", "law", "tells", ()),
        ("CLAUDE.md", "rules", "tells", ()),
        ("hook.sh", "programs", "runs", ()),
        ("src/deep/AGENTS.md", "rules", "tells", ()),
        ("srv.py", "programs", "runs", ()),
    ]
    assert next(iter(desk.files.values())).effect == "runs"


def test_what_the_start_tells_is_what_the_survey_shows(desk: Desk) -> None:
    desk.write(".croze/config.toml", "[model]\nmodel = 'a:b'\n")
    desk.write(".croze/hooks.toml", HOOK)
    desk.write("hook.sh", "true\n")
    desk.write(".mcp.json", "{}")
    desk.write(".croze/agents/one.md", AGENT)
    desk.write("AGENTS.md", "law\n")
    desk.write("CLAUDE.md", "law\n")

    def told() -> set[str]:
        config = desk.config
        found = (*config.notices, *load_hooks(config, desk.env).notices)
        notices = (*found, *load_mcp(config).notices, *untrusted(config, desk.env))
        paths = [Path(str(notice.params["path"])) for notice in notices]
        return {path.relative_to(desk.project).as_posix() for path in paths}

    everything = {".croze/config.toml", ".croze/hooks.toml", ".mcp.json", "AGENTS.md", "CLAUDE.md"}
    assert told() == everything | {".croze/agents"}
    desk.trust_all()
    assert told() == set()
    assert {each.state for each in desk.files.values()} == {"trusted"}
    for path in everything | {".croze/agents/one.md", "hook.sh"}:
        before = (desk.project / path).read_text()
        desk.write(path, before + "\n")
        (one,) = told()
        assert path.startswith(one)
        assert [each.path for each in desk.files.values() if each.state == "changed"] == [path]
        desk.write(path, before)


def test_a_link_out_of_the_project_is_nothing_of_the_project(desk: Desk, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("[model]\nmodel = 'evil:m'\n")
    outside = tmp_path / "outside"
    (outside / "agents").mkdir(parents=True)
    (outside / "agents/one.md").write_text(AGENT)
    (outside / "hooks.toml").write_text('[[Stop]]\ncommand = "true"\n')
    for name in ("AGENTS.md", ".mcp.json", "CLAUDE.md"):
        (desk.project / name).symlink_to(secret)
    (desk.project / ".croze").symlink_to(outside)
    found = desk.files
    assert {each.state for each in found.values()} == {"broken"}
    assert all(each.data is None and each.does == () for each in found.values())
    # Not even where a list, forged or old, has their content under their names.
    trust = desk.config.trust
    trust.add({"AGENTS.md": secret.read_bytes(), ".mcp.json": secret.read_bytes()})
    trust.add({".croze/hooks.toml": (outside / "hooks.toml").read_bytes()})
    assert load_hooks(desk.config, desk.env).hooks == ()
    assert load_mcp(desk.config).specs == ()
    assert {each.state for each in desk.files.values()} == {"broken"}


def test_a_trusted_file_that_becomes_a_link_out_is_inert(desk: Desk, tmp_path: Path) -> None:
    file = desk.write(".croze/hooks.toml", '[[Stop]]\ncommand = "true"\n')
    desk.trust_all()
    assert len(load_hooks(desk.config, desk.env).hooks) == 1
    copy = tmp_path / "copy.toml"
    copy.write_bytes(file.read_bytes())
    file.unlink()
    file.symlink_to(copy)
    assert load_hooks(desk.config, desk.env).hooks == ()


def test_names_that_only_a_lax_file_system_takes_for_the_same_do_not_count(desk: Desk) -> None:
    desk.write(".Croze/hooks.toml", HOOK)
    desk.write(".CROZE/config.toml", "[model]\nmodel = 'a:b'\n")
    desk.write(".MCP.json", '{"mcpServers": {"a": {"command": "true"}}}')
    desk.write("agents.md", "law")
    assert desk.files == {}
    assert load_mcp(desk.config).specs == ()
    assert desk.config.notices == ()


def test_huge_files_are_told_and_can_not_be_trusted(desk: Desk) -> None:
    for name in (".croze/config.toml", ".croze/hooks.toml", ".mcp.json", ".croze/agents/a.md"):
        file = desk.write(name, "")
        os.truncate(file, 3_000_000_000)
    found = desk.files
    assert {name: each.state for name, each in found.items()} == dict.fromkeys(found, "broken")
    assert len(found) == 4


def test_what_can_never_be_trusted_is_not_named_at_each_start(desk: Desk) -> None:
    desk.write(".croze/rules/a.md", "Use tabs.\n")
    desk.write(".croze/rules/empty.md", "\n")
    desk.write(".croze/rules/huge.md", "x" * 300_000)
    desk.write(".croze/rules/binary.md", "a\0b\1")
    assert len(untrusted(desk.config, desk.env)) == 1
    for_this_run = load(desk.project, env=desk.env, trust=True)
    assert untrusted(for_this_run, desk.env) == []
    desk.trust_all()
    assert untrusted(desk.config, desk.env) == []
    desk.write(".croze/rules/new.md", "Use spaces.\n")
    assert len(untrusted(desk.config, desk.env)) == 1


def test_a_thousand_files_are_looked_at_and_what_lies_behind_them_is_told(desk: Desk) -> None:
    for number in range(1_005):
        desk.write(f".croze/agents/a{number:04}.md", AGENT)
    found = desk.files
    assert sum(each.state == "new" for each in found.values()) == 1_000
    (rest,) = (each for each in found.values() if each.state == "broken")
    assert "5 more files" in rest.problem
    (notice,) = untrusted(desk.config, desk.env)
    assert notice.params["path"].endswith(".croze/agents")


def test_what_can_not_be_parsed_is_shown_with_its_problem_and_runs_nothing(desk: Desk) -> None:
    desk.write(".croze/hooks.toml", "[[Stop")
    desk.write(".croze/config.toml", "= = =")
    desk.write(".mcp.json", "{nonsense")
    desk.write(".croze/agents/a.md", "---\n{[\n---\nx")
    found = desk.files
    assert "TOML" in found[".croze/hooks.toml"].does[0]
    assert "TOML" in found[".croze/config.toml"].does[0]
    assert set(found) == {
        ".croze/hooks.toml",
        ".croze/config.toml",
        ".mcp.json",
        ".croze/agents/a.md",
    }


def test_a_named_program_is_pinned_by_its_name_and_by_where_a_link_leads(
    desk: Desk, tmp_path: Path
) -> None:
    desk.write("good.sh", "true\n")
    desk.write("evil.sh", "touch x\n")
    (desk.project / "run.sh").symlink_to("good.sh")
    (desk.project / "python").symlink_to("/bin/sh")
    desk.write(".croze/hooks.toml", '[[Stop]]\ncommand = "./python $CROZE_PROJECT_DIR/run.sh"\n')
    desk.trust_all()
    (hook,) = load_hooks(desk.config, desk.env).hooks
    assert set(hook.pinned) == {"python", "run.sh"}
    assert changed_file(hook.pinned, desk.project) == ""
    (desk.project / "run.sh").unlink()
    (desk.project / "run.sh").symlink_to("evil.sh")
    assert changed_file(hook.pinned, desk.project) == "run.sh"
    assert load_hooks(desk.config, desk.env).hooks == ()
    (desk.project / "run.sh").unlink()
    (desk.project / "run.sh").symlink_to("good.sh")
    assert changed_file(hook.pinned, desk.project) == ""
    (desk.project / "python").unlink()
    (desk.project / "python").symlink_to(tmp_path / "elsewhere")
    assert changed_file(hook.pinned, desk.project) == "python"


def test_a_program_that_is_too_large_can_be_trusted_by_nobody(desk: Desk) -> None:
    file = desk.write("hook.sh", "")
    os.truncate(file, 40_000_000)
    desk.write(".croze/hooks.toml", HOOK)
    desk.trust_all()
    assert named_files(["hook.sh"], desk.project) == {"hook.sh": None}
    assert load_hooks(desk.config, desk.env).hooks == ()


def test_no_word_of_a_command_is_too_odd_to_be_looked_at(desk: Desk) -> None:
    words = ["", "\0", "/", "..", "../..", "a\0b", "\udcff", "x" * 5_000, ".", "~", "/etc/passwd"]
    assert named_files(words, desk.project) == {}


def test_characters_that_can_not_be_seen_are_counted() -> None:
    assert hidden(b"plain\ttext\r\nline\n") == 0
    assert hidden("中文，没有隐藏字符。👩‍👩‍👧\n".encode()) == 0
    assert hidden("\ufeffa\u200bb\u202ec\x1b[8m\U000e0041".encode()) == 4


def test_a_digest_changes_with_any_file_and_not_with_their_order(desk: Desk) -> None:
    desk.write("AGENTS.md", "one")
    desk.write("CLAUDE.md", "two")
    files = list(desk.files.values())
    first = digest_of(files)
    assert digest_of(files[::-1]) == first
    desk.write("CLAUDE.md", "three")
    assert digest_of(list(desk.files.values())) != first


def test_the_home_of_the_user_as_a_project_keeps_its_own_files_the_users(tmp_path: Path) -> None:
    settings = tmp_path / ".claude/settings.json"
    settings.parent.mkdir()
    settings.write_text('{"hooks": {}}')
    places = places_in(Paths.of({"HOME": str(tmp_path)}), tmp_path, {"HOME": str(tmp_path)})
    trust = Trust(tmp_path / "trusted.json", tmp_path)
    assert acting_files(places, trust) == []


def test_a_program_of_megabytes_is_trusted_by_its_hash_and_no_copy_of_it_is_kept(
    desk: Desk,
) -> None:
    tool = desk.write(".croze/tools/big", "")
    tool.write_bytes(b"#!/bin/sh\n" + b"#" * 3_000_000)
    tool.chmod(0o755)
    desk.trust_all()
    (found,) = desk.files.values()
    assert (found.kind, found.effect, found.state, found.data) == ("tools", "runs", "trusted", None)
    assert list((desk.config.paths.state / "trusted").iterdir()) == []
    tool.write_bytes(b"#!/bin/sh\n" + b"-" * 3_000_000)
    assert [each.state for each in desk.files.values()] == ["changed"]


def test_a_skill_is_its_whole_folder(desk: Desk) -> None:
    desk.write(
        ".claude/skills/s/SKILL.md", "---\nname: s\ndescription: d\nallowed-tools: Bash\n---\nx\n"
    )
    desk.write(".claude/skills/s/scripts/run.sh", "true\n")
    found = desk.files
    assert {each.path: each.effect for each in found.values()} == {
        ".claude/skills/s/scripts/run.sh": "runs", ".claude/skills/s/SKILL.md": "tells",
    }  # fmt: skip
    assert "allowed-tools: Bash" in found[".claude/skills/s/SKILL.md"].does


def test_programs_of_servers_are_found_from_their_folder_and_behind_an_equals_sign(
    desk: Desk,
) -> None:
    server = {"command": "node", "args": ["run.js", "--require=lib/more.js"], "cwd": "srv"}
    desk.write(".mcp.json", json.dumps({"mcpServers": {"s": server}}))
    for name in ("srv/run.js", "lib/more.js"):
        desk.write(name, "1\n")
    assert {".mcp.json", "srv/run.js", "lib/more.js"} == set(desk.files)
    desk.trust_all()
    assert len(load_mcp(desk.config).specs) == 1
    desk.write("srv/run.js", "2\n")
    found = load_mcp(desk.config)
    assert found.specs == ()
    assert [entry.state for entry in found.entries] == ["untrusted"]
