"""The libraries of a project, by the command line: adding, finding by name, listing, reading, in two languages."""

import json
from pathlib import Path
from typing import Any

import pytest

from croze.app.config import load
from croze.app.libraries import open_libraries
from croze.knowledge import libraries as knowledge
from croze.knowledge.libraries import document_named, stands_for
from croze.types.errors import ConfigError
from croze.ui.cli.main import main
from croze.ui.cli.state import State
from croze.ui.i18n import use_language
from tests.knowledge.test_library_repository import Served

WIDGETS = "github.com/acme/widgets"


class Desk:
    """A project with an installed package, a repository of documentation, and the command line."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.project = root / "project"
        self.project.mkdir()
        self.home = root / "home"
        self.env = {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
        self._capsys = capsys
        self.served = Served(root / "served")
        self.served.root.mkdir()
        self.served.git("init", "-q")
        self.served.put(
            {
                f"{WIDGETS}/README.md": "# Widgets\n", f"{WIDGETS}/api/z.md": "z\n", f"{WIDGETS}/a.md": "a\n",
                "gitlab.com/other/widgets/README.md": "# Other\n", "github.com/acme/gears/README.md": "# Gears\n",
                "github.com/acme/tool/README.md": "# Tool\n",
            }
        )  # fmt: skip
        self.served.commit()
        self.env["CROZE_KNOWLEDGE__LIBRARY_REPOSITORY"] = str(self.served.root)

    def install(self, name: str, version: str, text: str = "def f(): 'Does.'\n") -> None:
        place = self.project / ".venv/lib/python3.11/site-packages"
        place.mkdir(parents=True, exist_ok=True)
        for old in place.glob(f"{name}-*"):
            old.rename(old.with_suffix(".gone"))
        info = place / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {name}\nVersion: {version}\nSummary: S\n\nbody\n")
        (info / "RECORD").write_text(f"{name}.py,,\n")
        (place / f"{name}.py").write_text(text)

    def npm(self, name: str, version: str) -> None:
        place = self.project / "node_modules" / name
        place.mkdir(parents=True)
        (place / "package.json").write_text(json.dumps({"version": version}))

    def run(self, *argv: str, language: str = "C.UTF-8") -> tuple[int, str, str]:
        self._capsys.readouterr()
        state = State(env={**self.env, "LANG": language}, cwd=self.project)
        try:
            code = main(list(argv), state=state)
        finally:
            use_language("en")
        out, err = self._capsys.readouterr()
        return code, out, err

    def lib(self, *argv: str) -> tuple[int, str, str]:
        return self.run("lib", *argv)

    def json(self, *argv: str) -> Any:
        code, out, err = self.run(*argv, "--json")
        assert code == 0, err
        return json.loads(out)


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Desk:
    return Desk(tmp_path, capsys)


def test_the_first_add_fetches_and_the_list_is_the_users_own(desk: Desk) -> None:
    code, _out, err = desk.lib("add", "gears")
    assert (code, err.strip()) == (0, "github.com/acme/gears: added; 1 documents, about 3 tokens")
    assert [row["name"] for row in desk.json("lib", "list")] == ["github.com/acme/gears"]
    assert list(desk.project.iterdir()) == []
    listed = next((desk.home / ".local/share/croze").glob("project-*/libraries.json"))
    assert listed.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["acme/widgets", WIDGETS])
def test_a_library_is_named_by_as_much_as_is_unique(desk: Desk, name: str) -> None:
    code, _out, err = desk.lib("add", "widgets")
    assert code == 2
    assert f"widgets may be any of {WIDGETS}, gitlab.com/other/widgets." in err
    assert desk.lib("add", name)[0] == 0
    assert desk.json("lib", "list")[0]["documents"] == 3
    code, _out, err = desk.lib("add", "acme/widgets")
    assert (code, f"The library {WIDGETS} is added already." in err) == (2, True)


def test_what_is_unknown_names_what_is_near(desk: Desk) -> None:
    code, _out, err = desk.lib("add", "gearz")
    assert code == 2
    assert "There is no library gearz among those known." in err
    assert "Did you mean github.com/acme/gears?" in err
    assert desk.lib("remove", "gears")[0] == 2
    assert desk.lib("add", "../../etc")[0] == 2


def test_removing_takes_it_off_the_list(desk: Desk) -> None:
    desk.lib("add", "gears")
    assert desk.lib("remove", "gears")[0] == 0
    assert desk.json("lib", "list") == []
    assert "no library is added" in desk.lib("list")[2]


def test_get_prints_every_document_sorted_by_path(desk: Desk) -> None:
    desk.lib("add", "acme/widgets")
    found = desk.json("lib", "get", "acme/widgets")
    assert [each["name"].removeprefix(f"{WIDGETS}/") for each in found] == [
        "README.md",
        "a.md",
        "api/z.md",
    ]
    assert found[0]["text"] == "# Widgets\n"
    _code, out, _err = desk.lib("get", "--paths")
    assert [Path(line).read_text() for line in out.splitlines()] == ["# Widgets\n", "a\n", "z\n"]
    _code, out, _err = desk.lib("get", "acme/widgets/api/z.md")
    assert out == f"<!-- {WIDGETS}/api/z.md -->\n\nz\n\n"
    assert desk.json("lib", "get", "gears")[0]["text"] == "# Gears\n"


def test_refresh_takes_what_is_new_and_proxy_another_address(desk: Desk, tmp_path: Path) -> None:
    desk.lib("add", "gears")
    assert "up to date" in desk.lib("refresh")[2]
    desk.served.put({"github.com/acme/gears/README.md": "# Gears, new\n"})
    desk.served.commit()
    assert desk.json("lib", "refresh")["changed"] is True
    assert desk.json("lib", "get", "gears")[0]["text"] == "# Gears, new\n"
    del desk.env["CROZE_KNOWLEDGE__LIBRARY_REPOSITORY"]
    other = Served(tmp_path / "other")
    other.root.mkdir()
    other.git("init", "-q")
    other.put({"github.com/acme/gears/README.md": "# Elsewhere\n"})
    other.commit()
    assert desk.lib("proxy", f"file://{other.root}")[0] == 0
    assert desk.lib("proxy")[1].strip() == f"file://{other.root}"
    desk.lib("refresh")
    assert desk.json("lib", "get", "gears")[0]["text"] == "# Elsewhere\n"


def test_a_project_can_neither_add_a_library_nor_choose_the_address(desk: Desk) -> None:
    file = desk.project / ".croze/config.toml"
    file.parent.mkdir()
    file.write_text('[knowledge]\nlibrary_repository = "/evil"\n')
    del desk.env["CROZE_KNOWLEDGE__LIBRARY_REPOSITORY"]
    load(desk.project, env=desk.env).trust.add({".croze/config.toml": file.read_bytes()})
    assert desk.lib("proxy")[1].startswith("https://")


def test_an_address_that_cant_be_reached_is_told_and_an_installed_package_taken(desk: Desk) -> None:
    desk.env["CROZE_KNOWLEDGE__LIBRARY_REPOSITORY"] = "file:///nowhere"
    code, _out, err = desk.lib("add", "gears")
    assert code == 1
    assert "The library documentation can't be fetched from file:///nowhere" in err
    desk.install("gears", "1.0")
    code, _out, err = desk.lib("add", "gears")
    assert code == 0
    assert "the installed package was taken" in err
    assert "python:gears: added; 2 documents" in err


def test_a_bare_name_is_looked_for_in_the_repository_first(desk: Desk) -> None:
    desk.install("gears", "1.0")
    desk.install("only", "1.0")
    desk.npm("both", "1")
    desk.install("both", "1")
    assert "github.com/acme/gears: added" in desk.lib("add", "gears")[2]
    assert "python:only: added" in desk.lib("add", "only")[2]
    assert "python:both, npm:both" in desk.lib("add", "both")[2]
    assert "npm:both: added" in desk.lib("add", "npm:both")[2]


def test_a_package_needs_no_fetch_and_its_version_is_watched(desk: Desk) -> None:
    desk.env["CROZE_KNOWLEDGE__LIBRARY_REPOSITORY"] = "file:///nowhere"
    desk.install("gears", "1.0")
    assert desk.lib("add", "python:gears")[0] == 0
    desk.install("gears", "2.0", "def newer(): 'New.'\n")
    (row,) = desk.json("lib", "list")
    assert (row["version"], row["installed"]) == ("1.0", "2.0")
    assert "2.0, was 1.0" in desk.lib("list")[1]
    libraries = open_libraries(load(desk.project, env=desk.env), desk.env)
    assert [(each.name, new) for each, new in libraries.renewed()] == [("python:gears", "2.0")]
    assert libraries.renewed() == []
    assert "newer" in libraries.documents("python:gears")[1].text
    code, _out, err = desk.lib("add", "python:absent")
    assert code == 2
    assert "The package absent is not installed for this project" in err


def test_the_audit_tells_what_a_session_would_be_told_and_what_is_cut(desk: Desk) -> None:
    desk.served.put({f"{WIDGETS}/long.md": "# One\n\n" + "word " * 30_000})
    desk.served.commit()
    desk.lib("add", "acme/widgets")
    found = {each["name"]: each for each in desk.json("knowledge", "--kind", "libraries")}
    assert found[f"{WIDGETS}/README.md"]["state"] == "loaded"
    cut = found[f"{WIDGETS}/long.md"]
    assert cut["state"] == "cut"
    assert "all libraries together get 8,000" in cut["reason"]
    assert 0 < sum(each["tokens"] for each in found.values()) <= 8_000
    _code, out, _err = desk.run("knowledge", "--kind", "libraries", language="zh_CN.UTF-8")
    assert "所有库合计" in out


def test_a_library_that_has_gone_from_the_repository_is_told(desk: Desk) -> None:
    desk.lib("add", "gears")
    desk.served.git("rm", "-rq", "github.com/acme/gears")
    desk.served.commit()
    desk.lib("refresh")
    (found,) = desk.json("knowledge", "--kind", "libraries")
    assert (found["state"], found["reason"]) == ("broken", "there is no documentation of it")
    assert "not there" in desk.lib("list")[1]


def test_the_commands_speak_chinese(desk: Desk) -> None:
    _code, _out, err = desk.run("lib", "add", "gears", language="zh_CN.UTF-8")
    assert "已添加" in err
    _code, _out, err = desk.run("lib", "add", "gears", language="zh_CN.UTF-8")
    assert "已经添加" in err
    _code, out, _err = desk.run("lib", "--help", language="zh_CN.UTF-8")
    assert "库" in out


def test_a_list_that_cant_be_read_is_told(desk: Desk) -> None:
    desk.lib("add", "gears")
    listed = next((desk.home / ".local/share/croze").glob("project-*/libraries.json"))
    listed.write_text("nonsense")
    libraries = open_libraries(load(desk.project, env=desk.env), desk.env)
    with pytest.raises(ConfigError):
        libraries.added()
    assert desk.lib("list")[0] == 2


def test_secrets_are_taken_out_of_documents(desk: Desk) -> None:
    desk.served.put({f"{WIDGETS}/a.md": "token: ghp_abcdefghijklmnopqrstuvwxyz0123456789\n"})
    desk.served.commit()
    desk.lib("add", "acme/widgets")
    _code, out, _err = desk.lib("get", "acme/widgets")
    assert "ghp_abc" not in out
    assert "<REDACTED>" in out


@pytest.mark.parametrize(
    ("name", "library", "fits"),
    [
        ("widgets", WIDGETS, True), ("acme/widgets", WIDGETS, True), (WIDGETS, WIDGETS, True),
        ("dgets", WIDGETS, False), ("python:x", "python:x", True), ("x", "python:x", True),
        ("@a/b", "npm:@a/b", True), ("b", "npm:@a/b", False), ("", WIDGETS, False),
    ],
)  # fmt: skip
def test_which_names_stand_for_a_library(name: str, library: str, *, fits: bool) -> None:
    assert stands_for(name, library) is fits


def test_a_documents_name_may_be_short_where_its_librarys_is(desk: Desk) -> None:
    desk.lib("add", "acme/widgets")
    libraries = open_libraries(load(desk.project, env=desk.env), desk.env)
    found = libraries.all_documents()
    for name in ("widgets/api/z.md", "acme/widgets/api/z.md", f"{WIDGETS}/api/z.md"):
        document = document_named(name, found)
        assert document is not None
        assert document.text == "z\n"
    assert document_named("z.md", found) is None


def test_what_was_read_of_packages_is_kept_within_bounds(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(knowledge, "MOST_KEPT", 2)
    libraries = open_libraries(load(desk.project, env=desk.env), desk.env)
    for number in range(4):
        desk.install(f"gears{number}", "1.0")
        assert len(libraries.documents(f"python:gears{number}")) == 2
    kept = list((desk.home / ".cache/croze/libraries/packages").iterdir())
    assert len(kept) == 2
    assert {file.stat().st_mode & 0o777 for file in kept} == {0o600}
    assert len(libraries.documents("python:gears0")) == 2
