"""What hides a task workspace's place: texts, values, and output however it is split."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from croze.workspace.task_mask import Mask

ROOT = Path("/home/u/dä ta/workspaces/agent-1")
MASK = Mask(ROOT, Path("/run/workspace"))


def streamed(mask, pieces):
    stream = mask.stream()
    return b"".join([*map(stream.feed, pieces), stream.finish()])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"{ROOT}", "."),
        (f"{ROOT}/a/b.txt", "./a/b.txt"),
        (f'File "{ROOT}/a.py", line 1', 'File "./a.py", line 1'),
        (f"{ROOT}0/x", "../agent-10/x"),
        (f"{ROOT.parent}/other:{ROOT}", "../other:."),
        ("/home/u/d%C3%A4%20ta/workspaces/agent-1/x", "./x"),
        ('"/home/u/d\\u00e4 ta/workspaces/agent-1"', '"."'),
        ("/home/u/other", "/home/u/other"),
        ("/usr/bin/python3", "/usr/bin/python3"),
    ],
)
def test_the_root_is_a_dot_and_its_neighbours_two(text, shown):
    assert MASK.text(text) == shown
    assert streamed(MASK, [text.encode()]).decode() == shown


def test_the_place_that_commands_see_is_hidden_in_output_only():
    assert streamed(MASK, [b"/run/workspace/a.py\n/run/workspaces"]) == b"./a.py\n/run/workspaces"
    assert MASK.text("/run/workspace/a.py") == "/run/workspace/a.py"


def test_every_text_of_a_value_is_looked_at():
    value = {"files": [f"{ROOT}/a", 1, None], f"{ROOT}": {"deep": (f"{ROOT}",)}}
    assert MASK.value(value) == {"files": ["./a", 1, None], ".": {"deep": ["."]}}


PIECES = st.lists(
    st.sampled_from(
        [str(ROOT), str(ROOT.parent), "/run/workspace", "/", "/home/u", "agent-1", "0", ".", "\n", "x", "é", "/ws"]
    ),
    max_size=8,
).map("".join)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(text=PIECES, cuts=st.lists(st.integers(0, 400), max_size=8))
@example(text=f"{ROOT}{ROOT}0", cuts=[1, 30, 31, 40])
def test_output_is_the_same_however_it_is_split(text, cuts):
    data = text.encode()
    ends = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    pieces = [data[a:b] for a, b in pairwise(ends)]
    assert streamed(MASK, pieces) == streamed(MASK, [data])
    assert streamed(MASK, [data[at : at + 1] for at in range(len(data))]) == streamed(MASK, [data])


@settings(max_examples=200, deadline=None)
@given(text=PIECES, cut=st.integers(0, 400))
def test_no_piece_that_is_shown_by_then_holds_the_root(text, cut):
    data = text.encode()
    stream = MASK.stream()
    shown = [stream.feed(data[:cut]), stream.feed(data[cut:]), stream.finish()]
    for at in range(1, 4):
        told = b"".join(shown[:at]).decode("utf-8", "ignore")
        assert f"{ROOT}/" not in told
        assert not told.endswith(str(ROOT))


def test_output_that_holds_no_path_is_not_held_back():
    stream = MASK.stream()
    assert stream.feed(b"50 % done\r") == b"50 % done\r"
    assert stream.feed(b"password: ") == b"password: "
    assert stream.finish() == b""


@pytest.mark.parametrize("root", ["/a/a", "/aa/a/a", "/x/workspaces/x"])
@given(data=st.text(alphabet="/ax.", max_size=30), cut=st.integers(0, 30))
def test_a_root_that_repeats_itself_is_hidden_all_the_same(root, data, cut):
    mask = Mask(Path(root))
    whole = streamed(mask, [data.encode()])
    assert streamed(mask, [data[:cut].encode(), data[cut:].encode()]) == whole
    assert whole.decode() == mask.text(data)
