"""Blame's fold: whatever the versions, each line has one origin, and lines keep theirs until they change."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from croze.app.blame_fold import YOU, Fold, Origin, Version, lines_of
from croze.workspace.files import sha256


def by(turn: int) -> Origin:
    return Origin(by="croze", session="s", turn=turn)


class Story:
    """Versions of a file, as a log has them."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}
        self.versions: list[Version] = []

    def keep(self, data: bytes | None) -> str | None:
        if data is None:
            return None
        self.contents[sha256(data)] = data
        return sha256(data)

    def change(self, before: bytes | None, after: bytes | None, *, undo: bool = False) -> None:
        number = len(self.versions) + 1
        self.versions.append(
            Version(number, number, self.keep(before), self.keep(after), by(number), undo=undo)
        )

    def fold(self, now: bytes) -> list[Origin | None]:
        fold = Fold(self.contents.get)
        for version in self.versions:
            fold.feed(version)
        lines, origins = fold.finish(now)
        assert lines == lines_of(now)
        assert len(origins) == len(lines)
        return origins


TEXTS = st.lists(
    st.sampled_from([b"a\n", b"b\n", b"c\n", b"\r\n", b"\xff\n", b"d"]), max_size=8
).map(b"".join)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(st.none(), TEXTS), min_size=1, max_size=8), TEXTS, st.data())
def test_every_line_of_any_history_has_an_origin_of_that_history(
    states: list[bytes | None], now: bytes, data: st.DataObject
) -> None:
    story = Story()
    for before, after in pairwise(states):
        if data.draw(st.booleans(), label="somebody else changed it between"):
            before = data.draw(TEXTS)
        story.change(before, after)
    for lost in data.draw(st.lists(st.sampled_from(sorted(story.contents) or [""]), max_size=2)):
        story.contents.pop(lost, None)
    known = {None, YOU, *(version.origin for version in story.versions)}
    assert set(story.fold(now)) <= known


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(st.integers(0, 99), unique=True, max_size=8), min_size=2, max_size=8))
def test_of_lines_that_never_repeat_each_is_the_latest_versions_that_brought_it(
    states: list[list[int]],
) -> None:
    ordered = [sorted(state) for state in states]
    texts = [b"".join(b"%d\n" % number for number in state) for state in ordered]
    story = Story()
    wanted: dict[int, Origin | None] = dict.fromkeys(ordered[0])
    for (_, before), (numbers, after) in pairwise(zip(ordered, texts, strict=True)):
        story.change(before, after)
        origin = story.versions[-1].origin
        wanted = {number: wanted.get(number, origin) for number in numbers}
    assert story.fold(texts[-1]) == [wanted[number] for number in ordered[-1]]


def test_an_undo_restores_the_origins_and_what_the_user_put_back_is_known() -> None:
    story = Story()
    story.change(None, b"one\n")
    story.change(b"one\n", b"one\ntwo\n")
    story.change(b"one\ntwo\n", b"one\n", undo=True)
    assert story.fold(b"one\n") == [by(1)]
    assert story.fold(b"one\ntwo\n") == [by(1), by(2)]


def test_a_version_whose_content_is_lost_shows_its_lines_in_the_next() -> None:
    story = Story()
    story.change(None, b"one\n")
    story.change(b"one\n", b"one\ntwo\n")
    story.change(b"one\ntwo\n", b"one\ntwo\nthree\n")
    del story.contents[sha256(b"one\ntwo\n")]
    assert story.fold(b"one\ntwo\nthree\n") == [by(1), by(2), by(2)]


def test_what_a_sub_agent_brought_is_its_own_line_by_line() -> None:
    kid = [Origin(by="croze", session="kid", turn=turn) for turn in (1, 2)]
    fold = Fold({sha256(b"a\nx\ny\nb\n"): b"a\nx\ny\nb\n", sha256(b"a\nb\n"): b"a\nb\n"}.get)
    version = Version(1, 1, sha256(b"a\nb\n"), sha256(b"a\nx\ny\nb\n"), by(9), child="kid")
    fold.feed(version, (["a\n", "x\n", "y\n"], [None, kid[0], kid[1]]))
    assert fold.text[1] == [None, kid[0], kid[1], None]
