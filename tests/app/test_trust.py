"""The list of what is trusted: exact contents, for the user's eyes only, never half written."""

import hashlib
import json
import multiprocessing
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.app.config import _project_may_set, load
from croze.app.keypath import known_keys
from croze.app.trust import Trust, projects
from croze.types.errors import ConfigError

HOOKS = ".croze/hooks.toml"


@pytest.fixture
def trust(tmp_path: Path) -> Trust:
    return Trust(tmp_path / "state/croze/trusted.json", tmp_path / "project")


def test_nothing_is_trusted_and_nothing_made_before_the_user_says_so(trust: Trust) -> None:
    assert not trust.holds(HOOKS, b"x")
    assert not trust.names(HOOKS)
    assert not trust.forget()
    assert not trust.listed.parent.exists()


def test_exactly_the_content_under_exactly_its_name_is_trusted(trust: Trust) -> None:
    trust.add({HOOKS: b"one"})
    assert trust.holds(HOOKS, b"one")
    assert not trust.holds(HOOKS, b"one ")
    assert not trust.holds(HOOKS, None)
    assert not trust.holds(".Croze/hooks.toml", b"one")
    assert not trust.holds("sub/" + HOOKS, b"one")
    assert not Trust(trust.listed, trust.root / "sub").holds(HOOKS, b"one")


@given(st.dictionaries(st.text(min_size=1), st.binary(), max_size=5), st.text(), st.binary())
def test_what_is_added_holds_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes], name: str, data: bytes
) -> None:
    trust = Trust(tmp_path_factory.mktemp("s") / "trusted.json", Path("/project"))
    trust.add(files)
    assert all(trust.holds(path, content) for path, content in files.items())
    assert all(trust.content(path) == content for path, content in files.items())
    assert trust.holds(name, data) == (files.get(name) == data)


def test_a_moved_project_is_another_one_and_its_old_place_is_nobodys_else(trust: Trust) -> None:
    trust.add({HOOKS: b"one"})
    moved = Trust(trust.listed, trust.root.with_name("renamed"))
    assert not moved.holds(HOOKS, b"one")
    assert not Trust(trust.listed, trust.root).holds(HOOKS, b"another project's, at the same place")


def test_a_whole_survey_replaces_what_was_trusted_and_one_file_adds_to_it(trust: Trust) -> None:
    trust.add({"a": b"1", "b": b"2"}, whole=True)
    trust.add({"c": b"3"})
    assert set(trust.kept.files) == {"a", "b", "c"}
    trust.add({"a": b"1"}, whole=True)
    assert set(trust.kept.files) == {"a"}
    assert trust.content("a") == b"1"
    assert [each.name for each in (trust.listed.parent / "trusted").iterdir()] == [
        hashlib.sha256(b"1").hexdigest()
    ]
    assert trust.forget()
    assert list((trust.listed.parent / "trusted").iterdir()) == []
    assert projects(trust.listed) == {}


def test_a_no_is_kept_for_these_contents_and_keeps_what_is_trusted(trust: Trust) -> None:
    trust.add({"a": b"1"})
    trust.decline("digest")
    assert (trust.kept.declined, set(trust.kept.files)) == ("digest", {"a"})


def test_the_list_and_the_contents_are_the_users_alone(trust: Trust) -> None:
    before = os.umask(0)
    try:
        trust.add({"a": b"1"})
    finally:
        os.umask(before)
    for path in (trust.listed.parent, *trust.listed.parent.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_a_kept_content_that_was_tampered_with_is_none(trust: Trust) -> None:
    trust.add({"a": b"1"})
    (kept,) = (trust.listed.parent / "trusted").iterdir()
    kept.write_bytes(b"2")
    assert trust.content("a") is None
    assert trust.holds("a", b"1")
    assert not trust.holds("a", b"2")


def test_what_is_for_this_run_only_is_not_written(trust: Trust) -> None:
    digest = hashlib.sha256(b"1").hexdigest()
    once = Trust(trust.listed, trust.root, {"a": digest})
    assert once.holds("a", b"1")
    assert not once.holds("a", b"2")
    assert not trust.listed.exists()


@pytest.mark.parametrize(
    "text",
    [
        "", "nonsense", "[]", "1", '{"version": 1}', '{"version": 1, "projects": []}',
        '{"version": 1, "projects": {"/a": []}}', '{"version": 1, "projects": {"/a": {"files": [1]}}}',
        '{"version": 1, "projects": {"/a": {"files": {"b": 1}}}}', '{"version": 2, "projects": {}}',
        '{"/a": 1}', "[" * 100_000, "\udcff",
    ],
)  # fmt: skip
def test_a_broken_list_is_a_clear_error_and_trusts_nothing(trust: Trust, text: str) -> None:
    trust.listed.parent.mkdir(parents=True)
    trust.listed.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigError) as caught:
        trust.holds("a", b"1")
    assert caught.value.code == "trust_unreadable"
    assert str(trust.listed) in caught.value.message
    with pytest.raises(ConfigError):
        trust.add({"a": b"1"})
    assert trust.listed.read_bytes() == text.encode("utf-8", "surrogateescape")


def test_a_broken_list_stops_croze_before_anything_is_taken_for_untrusted(tmp_path: Path) -> None:
    state = tmp_path / "home/.local/state/croze"
    state.mkdir(parents=True)
    (state / "trusted.json").write_text("{")
    with pytest.raises(ConfigError, match="can't be read"):
        load(tmp_path, env={"HOME": str(tmp_path / "home")})


def test_a_list_from_before_it_had_a_version_is_read_and_written_anew(trust: Trust) -> None:
    digest = hashlib.sha256(b"1").hexdigest()
    trust.listed.parent.mkdir(parents=True)
    trust.listed.write_text(json.dumps({str(trust.root): {"a": digest}}))
    assert trust.holds("a", b"1")
    trust.add({"b": b"2"})
    assert trust.holds("a", b"1")
    assert json.loads(trust.listed.read_text())["version"] == 1


def test_a_change_by_another_process_is_seen_at_once(trust: Trust) -> None:
    trust.add({"a": b"1"})
    assert trust.holds("a", b"1")
    Trust(trust.listed, trust.root).add({}, whole=True)
    assert not trust.holds("a", b"1")


def _add(listed: Path, root: Path, first: int) -> None:
    for number in range(first, first + 20):
        Trust(listed, root).add({f"f{number}": str(number).encode()})


def test_writers_beside_each_other_lose_nothing(trust: Trust) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [
        context.Process(target=_add, args=(trust.listed, trust.root, first))
        for first in (0, 20, 40)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert len(trust.kept.files) == 60
    assert all(trust.content(f"f{number}") == str(number).encode() for number in range(60))


def test_a_place_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with pytest.raises(ConfigError) as caught:
        Trust(tmp_path / "state/trusted.json", tmp_path).add({"a": b"1"})
    assert caught.value.code == "trust_unwritable"


def test_of_all_settings_a_trusted_project_may_set_only_these() -> None:
    """Whoever adds a setting has to decide here whether a project may loosen it."""
    checked = ("permissions", "limits")
    free = {
        key for key in known_keys() if key[0] not in checked and _project_may_set(key, object(), {})
    }
    assert {key for key in free if key[0] != "model"} == {("store", "storage_path")}
    assert not _project_may_set(("permissions", "allow"), ("x",), {})
    assert not _project_may_set(("permissions", "mode"), "full", {})
    assert not _project_may_set(("permissions", "sandbox"), "off", {})
    assert not _project_may_set(("permissions", "network"), True, {})
    assert not _project_may_set(("limits", "max_cost"), None, {})
    assert not _project_may_set(("limits", "max_cost"), 3.0, {("limits", "max_cost"): 2.0})
    assert _project_may_set(("limits", "max_cost"), 1.0, {("limits", "max_cost"): 2.0})
