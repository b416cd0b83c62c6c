"""Which files a conversation is about: the fold over its log."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from croze.context.in_play import InPlay, named
from croze.types.event import Event, FilesChanged, ToolReturned, Undone, UserSaid
from croze.types.parts import Text
from croze.types.tool import FileChange, Look


def events(*bodies: Any, start: int = 1) -> list[Event]:
    return [Event("s", start + at, 0, body) for at, body in enumerate(bodies)]


def read(path: str) -> ToolReturned:
    return ToolReturned("c", "m", "read_file", ok=True, look=Look(key=f"read:{path}"))


def listed(path: str) -> ToolReturned:
    return ToolReturned("c", "m", "list_files", ok=True, look=Look(key=f"list:{path}"))


def changed(path: str, by: str = "") -> FilesChanged:
    return FilesChanged("c", (FileChange(path, "modified", by=by),))


def said(text: str) -> UserSaid:
    return UserSaid("m", (Text(text),))


def test_files_are_in_play_that_were_read_changed_or_named() -> None:
    play = InPlay()
    play.follow(
        events(
            read("src/a.py"),
            changed("b.txt"),
            said('Look at @docs/c.md, @"my file.md" and ask @reviewer; me@x.org.'),
            ToolReturned("c", "m", "write_to_file", ok=True, observed={"out/d.ts": "0"}),
            ToolReturned("c", "m", "read_file", ok=False, observed={"failed.py": "0"}),
            changed("child.py", by="another session"),
            listed("lib"),
            read("../outside"),
            read("/etc/hosts"),
        )
    )
    assert list(play.files) == ["src/a.py", "b.txt", "docs/c.md", "my file.md", "out/d.ts"]
    assert list(play.folders) == ["src", "", "docs", "out", "lib"]


def test_only_what_the_last_look_brought_is_fresh_but_old_folders_may_be_again() -> None:
    play, log = InPlay(), events(read("src/a/x.py"), read("docs/y.md"))
    play.follow(log)
    assert list(play.touched) == ["src/a", "docs"]
    assert list(play.fresh) == ["src/a", "src", "", "docs"]
    log += events(read("src/a/z.py"), start=3)
    play.follow(log)
    assert list(play.touched) == ["src/a"]
    play.follow(log)
    assert not play.touched
    assert not play.fresh


def test_what_is_undone_is_in_play_no_longer() -> None:
    play, log = InPlay(), events(read("a.py"), read("b/c.py"))
    play.follow(log)
    log += events(Undone("u", "undo", hidden=((2, 2),)), start=3)
    play.follow(log)
    assert list(play.files) == ["a.py"]
    assert list(play.folders) == [""]
    assert play.generation == 1


def test_a_bare_word_is_no_path() -> None:
    assert list(named("@main @a.py. (@src/x) `@b.c` @@x/y foo@bar.com @../up.py")) == [
        "a.py",
        "src/x",
        "b.c",
        "../up.py",
    ]


paths = st.lists(st.sampled_from(["a", "b", "c.py"]), min_size=1, max_size=3).map("/".join)


@given(st.lists(paths, max_size=8), st.integers(0, 8), st.randoms())
def test_the_order_and_the_steps_of_looking_do_not_change_what_is_in_play(
    touched: list[str], step: int, random: Any
) -> None:
    log = events(*map(read, touched))
    whole, stepwise, shuffled = InPlay(), InPlay(), InPlay()
    whole.follow(log)
    stepwise.follow(log[:step])
    stepwise.follow(log)
    mixed = list(touched)
    random.shuffle(mixed)
    shuffled.follow(events(*map(read, mixed)))
    for other in (stepwise, shuffled):
        assert set(other.files) == set(whole.files)
        assert set(other.folders) == set(whole.folders)
