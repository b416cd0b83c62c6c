"""The finder on real folders: which places count, what overrides what, and what can't be used."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.knowledge.find import (
    MOST_FILES,
    Finder,
    Folder,
    Found,
    Kind,
    Places,
    overridden,
)

KIND = Kind(
    "notes",
    (
        Folder("project", ".croze/notes"),
        Folder("project", ".oldnotes"),
        Folder("config", "notes"),
        Folder("home", ".old/notes"),
    ),
)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    made = Places(tmp_path / "proj", tmp_path / "home", tmp_path / "home/.config/croze")
    made.root.mkdir()
    made.config.mkdir(parents=True)
    return made


def finder(places: Places, *, trusted: bool = True) -> Finder:
    return Finder(places, lambda _path, _data: trusted)


def put(folder: Path, name: str, text: str | bytes = "words") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def states(found: list[Found]) -> list[tuple[str, str]]:
    return [(each.path, each.state) for each in found]


def test_places_are_searched_by_priority_and_the_higher_wins_by_name(places: Places) -> None:
    put(places.root / ".croze/notes", "a.md", "one")
    put(places.root / ".oldnotes", "a.md", "two")
    put(places.root / ".oldnotes", "b.md", "three")
    put(places.config / "notes", "b.md", "four")
    put(places.config / "notes", "c.md", "five")
    put(places.home / ".old/notes", "d.md", "six")
    put(places.config / "notes/repos/proj", "c.md", "seven")
    put(places.home / ".old/notes/repos/proj", "e.md", "eight")

    loaded = finder(places).load(KIND)

    texts = {each.found.name: each.text for each in loaded if each.found.acts}
    assert texts == {"a": "one", "b": "three", "c": "five", "d": "six", "e": "eight"}
    shadowed = {
        each.found.path: each.found.reason for each in loaded if each.found.state == "shadowed"
    }
    assert shadowed == {
        ".oldnotes/a.md": ".croze/notes/a.md has the same name",
        str(places.config / "notes/b.md"): ".oldnotes/b.md has the same name",
        str(
            places.config / "notes/repos/proj/c.md"
        ): f"{places.config}/notes/c.md has the same name",
    }
    assert [each.found.source for each in loaded if each.found.acts] == [
        "project", "project", "user", "user", "repos",
    ]  # fmt: skip


def test_another_projects_own_files_are_not_found(places: Places) -> None:
    put(places.config / "notes/repos/other", "a.md")
    assert finder(places).find(KIND) == []


def test_first_match_takes_one_folder_and_names_it_for_the_rest(places: Places) -> None:
    (places.root / ".croze/notes").mkdir(parents=True)
    put(places.root / ".croze/notes", "picture.png")
    put(places.root / ".oldnotes", "a.md")
    put(places.config / "notes", "b.md")
    kind = Kind("notes", KIND.folders, strategy="first")
    found = finder(places).find(kind)
    assert states(found) == [
        (".oldnotes/a.md", "loaded"),
        (str(places.config / "notes/b.md"), "shadowed"),
    ]
    assert found[1].reason == f".oldnotes is used instead of {places.config}/notes"


def test_the_projects_first_folder_counts_beside_all_of_the_users(places: Places) -> None:
    put(places.root / ".croze/notes", "a.md")
    put(places.root / ".oldnotes", "b.md")
    put(places.config / "notes", "c.md")
    put(places.home / ".old/notes", "d.md")
    kind = Kind("notes", KIND.folders, strategy="first-of-project")
    assert [(each.name, each.state) for each in finder(places).find(kind)] == [
        ("a", "loaded"), ("b", "shadowed"), ("c", "loaded"), ("d", "loaded"),
    ]  # fmt: skip


def test_suffixes_say_which_files_count_and_none_means_every_file(places: Places) -> None:
    folder = places.root / ".croze/notes"
    for name in ("a.md", "B.MD", "c.txt", "d", ".hidden.md"):
        put(folder, name)
    (folder / "sub").mkdir()
    names = [each.name for each in finder(places).find(KIND)]
    assert names == ["B", "a"]
    everything = [each.name for each in finder(places).find(Kind("n", KIND.folders, suffixes=()))]
    assert everything == ["B.MD", "a.md", "c.txt", "d"]
    plain = [each.name for each in finder(places).find(Kind("n", KIND.folders, suffixes=("",)))]
    assert plain[0] == "d"


def test_a_folder_counts_by_the_file_inside_it(places: Places) -> None:
    put(places.root / ".croze/notes/deploy", "SKILL.md", "how")
    put(places.root / ".croze/notes/empty", "other.md")
    put(places.root / ".croze/notes", "loose.md")
    found = finder(places).find(Kind("skills", KIND.folders, inside="SKILL.md"))
    assert [(each.name, each.path) for each in found] == [
        ("deploy", ".croze/notes/deploy/SKILL.md")
    ]


def test_exact_names_are_looked_up_without_a_listing(places: Places) -> None:
    put(places.root, "LAW.md")
    kind = Kind("law", (Folder("project", ".", only=("LAW.md", "MISSING.md")),))
    assert states(finder(places).find(kind)) == [("LAW.md", "loaded")]


def test_one_real_file_counts_once_and_a_link_to_it_is_told(places: Places) -> None:
    put(places.root / ".croze/notes", "a.md")
    (places.root / ".croze/notes/b.md").symlink_to("a.md")
    (places.root / ".oldnotes").symlink_to(".croze/notes")
    found = finder(places).find(KIND)
    assert [(each.name, each.state) for each in found] == [
        ("a", "loaded"), ("b", "shadowed"), ("a", "shadowed"), ("b", "shadowed"),
    ]  # fmt: skip
    assert found[1].reason == "it is the same file as .croze/notes/a.md"


def test_an_untrusted_file_of_the_project_is_inert_and_shadows_nothing(places: Places) -> None:
    put(places.root / ".croze/notes", "a.md", "theirs")
    put(places.config / "notes", "a.md", "mine")
    loaded = finder(places, trusted=False).load(KIND)
    assert [(each.found.state, each.text) for each in loaded] == [
        ("untrusted", "theirs"), ("loaded", "mine"),
    ]  # fmt: skip


def test_trust_is_asked_for_the_projects_files_only_and_with_their_bytes(places: Places) -> None:
    inside = put(places.root / ".croze/notes", "a.md", b"\xef\xbb\xbfone\r\n")
    put(places.config / "notes", "b.md")
    asked = []

    def trusts(path: Path, data: bytes) -> bool:
        asked.append((path, data))
        return True

    Finder(places, trusts).load(KIND)
    assert asked == [(inside, b"\xef\xbb\xbfone\r\n")]
    Finder(places, trusts).load(Kind("told", KIND.folders, acts=False))
    assert len(asked) == 1


def test_a_home_that_is_the_project_holds_the_users_own_files(tmp_path: Path) -> None:
    places = Places(tmp_path, tmp_path, tmp_path / ".config/croze")
    put(tmp_path / ".old/notes", "a.md")
    kind = Kind("notes", (Folder("project", ".old/notes"), Folder("home", ".old/notes")))
    loaded = finder(places, trusted=False).load(kind)
    assert [(each.found.source, each.found.state) for each in loaded] == [("user", "loaded")]


def test_what_leads_out_of_the_project_is_refused_and_what_the_user_links_is_followed(
    places: Places, tmp_path: Path
) -> None:
    secret = put(tmp_path, "secret.md", "secret")
    (places.root / ".croze/notes").mkdir(parents=True)
    (places.root / ".croze/notes/a.md").symlink_to(secret)
    (places.root / ".oldnotes").symlink_to(tmp_path)
    (places.config / "notes").mkdir()
    (places.config / "notes/b.md").symlink_to(secret)
    loaded = finder(places).load(KIND)
    assert [(each.found.source, each.found.state, each.text) for each in loaded] == [
        ("project", "broken", ""), ("project", "broken", ""), ("user", "loaded", "secret"),
    ]  # fmt: skip


@pytest.mark.parametrize("base", ["project", "user"])
def test_what_is_no_readable_file_is_told_and_stops_nothing(places: Places, base: str) -> None:
    folder = places.root / ".croze/notes" if base == "project" else places.config / "notes"
    put(folder, "binary.md", b"\0\1\2\3")
    put(folder, "huge.md", "x" * 300_000)
    put(folder, "latin.md", "déjà".encode("latin-1"))
    put(folder, "marked.md", b"\xef\xbb\xbfone\r\ntwo\r\n")
    (folder / "dangling.md").symlink_to("nowhere.md")
    (folder / "folder.md").mkdir()
    (folder / "loop.md").symlink_to("loop.md")
    os.mkfifo(folder / "pipe.md")
    loaded = {each.found.name: each for each in finder(places).load(KIND)}
    assert {name for name, each in loaded.items() if each.found.acts} == {"latin", "marked"}
    assert loaded["latin"].text == "déjà"
    assert loaded["marked"].text == "one\ntwo\n"
    broken = {name: each.found for name, each in loaded.items() if not each.found.acts}
    assert set(broken) == {"binary", "huge", "dangling", "folder", "loop", "pipe"}
    assert all(each.state == "broken" and each.reason for each in broken.values())
    assert broken["huge"].reason == "it has 300,000 bytes, more than 256,000"
    assert broken["huge"].sha256 == ""


def test_a_name_that_is_not_utf8_is_told_in_words_that_can_be_printed(places: Places) -> None:
    folder = os.fsencode(places.config / "notes")
    os.makedirs(folder)
    with open(os.path.join(folder, b"caf\xe9.md"), "wb") as file:
        file.write(b"x")
    (found,) = finder(places).find(KIND)
    assert (found.state, found.reason) == ("broken", "its name is not UTF-8")
    found.path.encode()


@pytest.mark.parametrize("base", ["project", "user"])
def test_what_stands_in_the_place_of_a_folder_is_told(places: Places, base: str) -> None:
    folder = places.root / ".croze/notes" if base == "project" else places.config / "notes"
    put(folder.parent, folder.name)
    (file,) = finder(places).find(KIND)
    folder.unlink()
    folder.symlink_to(folder.name)
    (loop,) = finder(places).find(KIND)
    assert file.state == loop.state == "broken"
    assert file.reason
    assert loop.reason


def test_more_files_than_are_looked_at_are_told(places: Places) -> None:
    folder = places.config / "notes"
    folder.mkdir()
    for number in range(MOST_FILES + 3):
        (folder / f"{number:05}.md").touch()
    found = finder(places).find(KIND)
    assert len(found) == MOST_FILES + 1
    assert found[-1].state == "broken"
    assert found[-1].reason == "3 more files in it are not looked at"


def test_size_tokens_and_hash_are_those_of_the_content(places: Places) -> None:
    import hashlib

    put(places.config / "notes", "a.md", "0123456789" * 33)
    (each,) = finder(places).load(KIND)
    assert (each.found.size, each.found.tokens) == (330, 100)
    assert each.found.sha256 == hashlib.sha256(b"0123456789" * 33).hexdigest()


def test_secrets_in_a_file_are_not_in_its_text(places: Places) -> None:
    put(places.config / "notes", "a.md", "key AKIAIOSFODNN7EXAMPLF end")
    (each,) = finder(places).load(KIND)
    assert "AKIAIOSFODNN7EXAMPLF" not in each.text


def test_the_project_is_not_searched_above_its_root(places: Places) -> None:
    put(places.root.parent / ".croze/notes", "a.md")
    assert finder(places).find(KIND) == []


NAMES = st.sampled_from(["a", "b", "c"])
STATES = st.sampled_from(["loaded", "cut", "untrusted", "broken", "shadowed"])


@given(st.lists(st.tuples(NAMES, STATES), max_size=12))
def test_of_each_name_one_acts_at_most_and_it_is_the_highest_that_can(
    given_files: list[tuple[str, str]],
) -> None:
    files = [
        Found(kind="n", name=name, path=str(at), source="user", state=state)  # type: ignore[arg-type]  # drawn
        for at, (name, state) in enumerate(given_files)
    ]
    told = overridden(files)
    assert [each.path for each in told] == [each.path for each in files]
    for name in "abc":
        usable = [each.path for each in files if each.name == name and each.acts]
        acting = [each.path for each in told if each.name == name and each.acts]
        assert acting == usable[:1]
