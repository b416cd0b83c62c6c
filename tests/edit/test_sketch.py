"""Sketches with elision markers: the intended text, or a refusal; never anything else."""

import difflib
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import croze
from croze.edit.grammar import language, parse
from croze.edit.plan import apply
from croze.edit.sketch import SketchEdit, plan_sketch
from croze.edit.values import EditPlan, Refusal

ROOT = Path(croze.__file__).parent
CORPUS = Path(__file__).parent / "corpus"
SOURCES = (
    *(
        (name, (ROOT / name).read_text(encoding="utf-8"))
        for name in ("edit/diff.py", "tools/registry.py")
    ),
    *((file.stem, file.read_text(encoding="utf-8")) for file in sorted(CORPUS.glob("*.txt"))),
)
JS = """// app
import { log } from './log.js';

export class App {
  constructor(x) {
    this.x = x;
    this.y = null;
  }

  render() {
    return this.x;
  }

  close() {
    this.y.close();
    return true;
  }
}

function helper(a) {
  return a + 1;
}

export function main() {
  const app = new App(helper(1));
  return app.render();
}
"""
PY = """import os
import sys

LIMIT = 10


class Store:
    def __init__(self, path):
        self.path = path
        self.rows = []

    def read(self):
        with open(self.path) as stream:
            return stream.read()

    def clear(self):
        self.rows.clear()


@cached
def limit():
    return LIMIT


def main():
    store = Store(os.getcwd())
    print(store.read())
    return 0
"""


def sketched(text, sketch, path="a.py"):
    planned = plan_sketch(text, SketchEdit(sketch, path))
    return planned.code if isinstance(planned, Refusal) else apply(planned)


def sketch_of(before, after, context, marker):
    """The changed places of `after` with lines of context (blank ones don't count), and a marker for each
    part left out."""
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    spans = []
    for kind, _, _, start, end in matcher.get_opcodes():
        if kind != "equal":
            low, high = reach(after, start, -1, context), reach(after, end, 1, context)
            if spans and low <= spans[-1][1]:
                spans[-1][1] = high
            else:
                spans.append([low, high])
    rows, last = [], 0
    for low, high in spans:
        rows += [marker] * (low > last) + after[low:high]
        last = high
    return "\n".join([*rows, *[marker] * (last < len(after))]) + "\n"


def reach(lines, at, step, count):
    """From a gap between lines, the one `count` filled lines away."""
    while count and 0 <= (at - 1 if step < 0 else at) < len(lines):
        count -= bool(lines[at - 1 if step < 0 else at].strip())
        at += step
    return at


def mutated(source, seed):
    """A few changes of the lines: reworded, removed, added, copied from elsewhere, moved."""
    chance = random.Random(seed)
    lines = list(source)
    for _ in range(chance.randint(1, 3)):
        at, kind = chance.randrange(len(lines)), chance.random()
        if kind < 0.35:
            lines[at] += chance.choice(["  # why", "_x", "(1)"])
        elif kind < 0.55:
            del lines[at : at + chance.choice([1, 1, 2])]
        elif kind < 0.8:
            new = (
                ["    new = 1"],
                ["", "def added():", "    return 1", ""],
                ["    if x:", "        y"],
            )
            lines[at:at] = chance.choice(new)
        elif kind < 0.9:
            other = chance.randrange(len(source))
            lines[at:at] = source[other : other + chance.randint(1, 6)]
        else:
            other = chance.randrange(len(lines))
            moved = lines[other : other + 3]
            del lines[other : other + 3]
            at = min(at, len(lines))
            lines[at:at] = moved
        lines = lines or ["x"]
    return lines


@settings(max_examples=200)
@given(st.integers(0, 2**32), st.sampled_from(SOURCES), st.integers(1, 6))
def test_a_sketch_of_a_known_change_gives_it_or_is_refused(seed, source, context):
    path, text = source
    before = text.removesuffix("\n").split("\n")
    after = mutated(before, seed)
    sketch = sketch_of(before, after, context, "# ... existing code ...")
    expected = "\n".join(after) + ("\n" if text.endswith("\n") else "")
    assert sketched(text, sketch, path) in (expected, "undecided_sketch")


@settings(max_examples=60)
@given(st.integers(0, len(PY.split("\n")) - 2), st.integers(3, 9))
def test_one_added_line_with_enough_context_is_put_there(at, context):
    before = PY.removesuffix("\n").split("\n")
    after = [*before[:at], "    # a line of its own", *before[at:]]
    sketch = sketch_of(before, after, context + 2, "# ... existing code ...")
    assert sketched(PY, sketch) == "\n".join(after) + "\n"


@given(st.text(), st.text(), st.sampled_from(["a.py", "a.js", "a.md", ""]))
def test_no_sketch_raises(text, sketch, path):
    planned = plan_sketch(text.replace("\r\n", "\n"), SketchEdit(sketch, path))
    assert isinstance(planned, EditPlan | Refusal)


@pytest.mark.parametrize(
    ("marker", "path"),
    [
        ("# ... existing code ...", "a.py"),
        ("// ... existing code ...", "a.js"),
        ("/* ... existing code ... */", "a.css"),
        ("<!-- ... existing code ... -->", "a.html"),
        ("-- ... existing code ...", "a.sql"),
        ("; ... existing code ...", "a.ini"),
        ("% ... existing code ...", "a.tex"),
        ('""" ... existing code ... """', "a.py"),
        ("// …", "a.go"),
        ("... existing code ...", "a.txt"),
    ],
)
def test_markers_are_known_in_every_comment_style(marker, path):
    before = [f"line number {at}" for at in range(20)]
    after = [*before[:5], "line number five", *before[6:12], "added", *before[12:15], *before[16:]]
    sketch = sketch_of(before, after, 2, marker)
    assert sketch.count(marker) >= 3
    assert sketched("\n".join(before) + "\n", sketch, path) == "\n".join(after) + "\n"


def test_lines_that_stay_keep_their_bytes_and_the_end_of_the_file_too():
    text = "alpha one  \nalpha two\t\nalpha three\nalpha four\nalpha five"
    sketch = "# ... existing code ...\nalpha one\nalpha two\nnew\nalpha three\nalpha four\n# ... existing code ...\n"
    expected = "alpha one  \nalpha two\t\nnew\nalpha three\nalpha four\nalpha five"
    assert sketched(text, sketch.replace("\n", "\r\n")) == expected


def test_text_is_added_at_the_start_and_at_the_end():
    rows = [f"row {at}" for at in range(9)]
    text = "\n".join(rows) + "\n"
    start = "\n".join(["new", *rows[:2], "# ... existing code ..."])
    assert sketched(text, start, "a.txt") == "new\n" + text
    end = "\n".join(["# ... existing code ...", *rows[-2:], "new"])
    assert sketched(text, end, "a.txt") == text + "new\n"


def test_lines_between_two_pairs_of_unique_lines_are_deleted():
    rows = [f"row {at}" for at in range(12)]
    text = "\n".join(rows) + "\n"
    gone = "\n".join(["# ...", *rows[2:4], *rows[6:8], "# ..."])
    assert sketched(text, gone, "a.txt") == "\n".join(rows[:4] + rows[6:]) + "\n"
    single = "\n".join(["# ...", rows[3], rows[6], "# ..."])
    assert sketched(text, single, "a.txt") == "undecided_sketch"


@pytest.mark.parametrize(
    ("sketch", "told"),
    [
        ("# ...\nnew line\n# ...\n", "where in the file it begins"),
        ("# ...\nrow 3\nnew line\nrow 4\n# ...\n", "where in the file it begins"),
        ("# ...\nrow 3\nrow 4\nnew line\n# ...\n", "where in the file it ends"),
        ("new line\n# ...\n", "where in the file it begins"),
        ("row 1\nrow 2\nnew line\nrow 3\n", "where in the file"),
        ("# ...\nrow 3\nrow 4\nrow 5\n# ...\n", "says no change"),
        ("# ...\nrow 5\nrow 6\nA\nrow 7\nrow 8\n# ...\nrow 2\nrow 3\nB\nrow 4\nrow 5\n# ...\n", "before"),
        ("# ...\nrow 3\nrow 4\nx # ... existing code ...\nrow 5\nrow 6\n# ...\n", "dots"),
        ("", "no lines"),
        ("# ...\n", "no lines"),
    ],
)  # fmt: skip
def test_what_a_sketch_leaves_open_is_refused_with_what_is_missing(sketch, told):
    text = "".join(f"row {at}\n" for at in range(12))
    planned = plan_sketch(text, SketchEdit(sketch, "a.txt"))
    assert (planned.code, told in planned.message) == ("undecided_sketch", True)
    assert "two unchanged lines" in planned.text


def test_places_that_are_nearly_the_same_are_not_chosen_between():
    part = "def run():\n    first()\n    {}\n    last()\n    return done\n\n"
    text = part.format("a()") + part.format("b()")
    sketch = "# ...\n    first()\n    {}\n    last()\n# ...\n"
    for new in ("c()", "a()", "b()"):
        assert sketched(text, sketch.format(new), "a.txt") == "undecided_sketch"


def test_restated_quotes_are_not_rewritten():
    text = "row 1\nrow 2\nsay “it”\nrow 3\nrow 4\nrow 5\n"
    sketch = 'row 1\nrow 2\nsay "it"\nrow 3\nrow 4\n# ...\n'
    assert sketched(text, sketch, "a.txt") == "undecided_sketch"


def test_a_missing_file_takes_a_whole_text_but_no_sketch():
    assert sketched("", "a\nb\n") == "a\nb\n"
    assert sketched("", "a\n# ... existing code ...\n") == "undecided_sketch"


NAMED = [
    (
        "a.py", PY,
        "# ... existing code ...\n\ndef main(argv):\n    store = Store(argv[1])\n    print(store.read())\n    return 0\n",
        ("def main():\n    store = Store(os.getcwd())", "def main(argv):\n    store = Store(argv[1])"),
    ),
    (
        "a.py", PY,
        "# ... existing code ...\nclass Store:\n    # ... existing code ...\n\n    def clear(self):\n        self.rows = []\n\n# ... existing code ...\n",
        ("self.rows.clear()", "self.rows = []"),
    ),
    (
        "a.py", PY,
        "# ... existing code ...\nclass Store:\n    # ... existing code ...\n\n    def size(self):\n        return 1\n\n\n# ... existing code ...\n",
        ("self.rows.clear()\n", "self.rows.clear()\n\n    def size(self):\n        return 1\n"),
    ),
    (
        "a.py", PY,
        "# ... existing code ...\n\n\ndef after():\n    return 1\n",
        ("    return 0\n", "    return 0\n\n\ndef after():\n    return 1\n"),
    ),
    (
        "a.js", JS,
        "// ... existing code ...\nexport class App {\n  // ... existing code ...\n  render() {\n    log(this.x);\n    return this.x;\n  }\n  // ... existing code ...\n}\n// ... existing code ...\n",
        ("    return this.x;", "    log(this.x);\n    return this.x;"),
    ),
    (
        "a.js", JS,
        "// ... existing code ...\nfunction helper(a, b) {\n  return a + b;\n}\n\n// ... existing code ...\n",
        ("function helper(a) {\n  return a + 1;", "function helper(a, b) {\n  return a + b;"),
    ),
    (
        "a.js", JS,
        "// ... existing code ...\nexport class App {\n  // ... existing code ...\n\n  reset() {\n    this.x = 0;\n  }\n}\n// ... existing code ...\n",
        ("    return true;\n  }\n", "    return true;\n  }\n\n  reset() {\n    this.x = 0;\n  }\n"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("path", "text", "sketch", "change"), NAMED)
def test_definitions_are_found_by_name_where_there_is_a_grammar(path, text, sketch, change):
    assert text.count(change[0]) == 1
    expected = text.replace(*change) if parse("", language(path)) else "undecided_sketch"
    assert sketched(text, sketch, path) == expected


@pytest.mark.parametrize(
    ("path", "text", "sketch"),
    [
        # the name stands twice, or in another class
        ("a.py", PY + "\n\ndef main():\n    pass\n", "# ...\n\ndef main():\n    return 1\n\n# ...\n"),
        ("a.py", PY, "# ...\n\ndef read(self):\n    return 1\n\n# ...\n"),
        ("a.py", PY, "# ...\n\nclass Other:\n    def read(self):\n        return 1\n\n# ...\n"),
        # the decorator may be meant to go, or was left out
        ("a.py", PY, "# ...\n\ndef limit():\n    return LIMIT + 1\n\n# ...\n"),
        # the marker may stand for the rest of the function
        ("a.py", PY, "# ...\ndef main():\n    store = Store(sys.argv[1])\n# ... existing code ...\n"),
        # a new function without a place
        ("a.js", JS, "// ...\nfunction added() {\n  return 1;\n}\n// ...\n"),
        # most of the class is left out without a marker
        ("a.py", PY, "# ...\n\nclass Store:\n    def read(self):\n        return 2\n\n# ...\n"),
    ],
)  # fmt: skip
def test_definitions_whose_place_or_extent_is_open_are_refused(path, text, sketch):
    assert sketched(text, sketch, path) == "undecided_sketch"
