"""The map of a repository: what ranks first, budgets, focus, and that it is always the same."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import croze
from croze.retrieval.outline import outline
from croze.retrieval.repomap import Stopped, draw, rank
from croze.text.tokens import estimate

PROJECT = {
    "core.py": "class Engine:\n    def start(self): pass\n\ndef helper_of_core(): pass\n",
    "a.py": "from core import Engine\ndef run_a():\n    Engine().start()\n",
    "b.py": "from core import Engine\ndef run_b():\n    return Engine()\n",
    "c.py": "from core import Engine\nfrom a import run_a\ndef main():\n    run_a(Engine())\n",
    "island.py": "def alone():\n    def inner(): pass\n",
    "far.py": "from side import Sidecar\ndef drive():\n    Sidecar()\n",
    "side.py": "class Sidecar:\n    pass\n",
}


def outlines(files):
    return {path: outline(source.encode(), "python") for path, source in files.items()}


def names(ranked):
    return [one.definition.name for one in ranked]


def test_what_most_files_use_comes_first_and_inner_functions_never():
    ranked = names(rank(outlines(PROJECT)))
    assert ranked[0] == "Engine"
    assert ranked.index("run_a") < ranked.index("alone")
    assert "inner" not in ranked
    assert set(ranked) == {
        "Engine", "start", "helper_of_core", "run_a", "run_b", "main", "alone", "drive", "Sidecar",
    }  # fmt: skip


def test_focus_brings_what_the_focused_file_uses_to_the_front():
    assert names(rank(outlines(PROJECT), ["far.py"]))[0] == "Sidecar"
    assert names(rank(outlines(PROJECT)))[0] == "Engine"


def test_a_folder_in_focus_stands_for_its_files():
    files = {f"one/{path}": source for path, source in PROJECT.items()}
    files["two/x.py"] = "from one.side import Sidecar\nSidecar()\n"
    assert names(rank(outlines(files), ["two"]))[0] == "Sidecar"
    assert rank(outlines(files), ["."]) == rank(outlines(files))


def test_what_is_imported_from_elsewhere_is_no_reference_to_a_namesake():
    files = {
        "fields.py": "def field(): pass\n",
        "used.py": "def chosen(): pass\n",
        **{
            f"user{n}.py": "from dataclasses import field\nfrom used import chosen\nfield()\nchosen()\n"
            for n in range(5)
        },
    }
    ranked = rank(outlines(files))
    weights = {one.definition.name: one.weight for one in ranked}
    assert weights["chosen"] > 3 * weights["field"]


def test_a_name_that_many_files_define_counts_for_nothing():
    files = {f"m{n:02}.py": "def main(): pass\n" for n in range(20)}
    files["z.py"] = "class Zebra: pass\n"
    files["user.py"] = "from z import Zebra\nmain()\nmain()\nZebra()\n"
    assert names(rank(outlines(files)))[0] == "Zebra"


def test_the_map_shows_files_with_their_definitions_in_order_of_lines():
    drawn = draw(rank(outlines({"core.py": PROJECT["core.py"]})), 500, estimate)
    assert drawn.text == (
        "core.py:\n  1-2: class Engine\n    2: def start(self)\n  4: def helper_of_core()"
    )
    assert (drawn.shown, drawn.files, drawn.tokens) == (3, 1, estimate(drawn.text))


def test_nothing_gives_an_empty_map():
    drawn = draw(rank({}), 100, estimate)
    assert (drawn.text, drawn.shown, drawn.tokens) == ("", 0, 0)


def test_ranking_ends_soon_when_it_is_stopped():
    with pytest.raises(Stopped):
        rank(outlines(PROJECT), stopped=lambda: True)


NAMES = ["alpha", "BetaThing", "gamma_ray", "_delta", "eps", "Zeta"]
FILES = st.dictionaries(
    st.sampled_from(["a.py", "b/c.py", "b/d.py", "e.py", "f/g/h.py"]),
    st.tuples(
        st.lists(st.sampled_from(NAMES), max_size=5), st.lists(st.sampled_from(NAMES), max_size=8)
    ),
)


def built(files):
    return {
        path: "".join(f"def {name}():\n    pass\n" for name in defined)
        + "".join(f"{name}()\n" for name in used)
        for path, (defined, used) in files.items()
    }


@given(FILES, st.integers(0, 200), st.integers(0, 400))
@settings(deadline=None)
def test_a_map_keeps_its_budget_and_shows_the_first_ones(files, budget, longest):
    ranked = rank(outlines(built(files)))
    drawn = draw(ranked, budget, estimate, longest=longest)
    assert estimate(drawn.text) == drawn.tokens <= budget
    assert len(drawn.text) <= longest
    assert list(drawn.ranked) == ranked[: drawn.shown]
    assert drawn.text.count("\n  ") == drawn.shown


@given(FILES, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_of_the_files_does_not_matter(files, random):
    sources = built(files)
    shuffled = list(sources)
    random.shuffle(shuffled)
    other = outlines({path: sources[path] for path in shuffled})
    assert rank(outlines(sources)) == rank(other)


def test_another_hash_seed_gives_the_same_map():
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from croze.retrieval.outline import outline; from croze.retrieval.repomap import *;"
        f"files = {PROJECT!r};"
        "found = {p: outline(s.encode(), 'python') for p, s in files.items()};"
        "print(draw(rank(found, ['a.py']), 300, len, longest=400).text)"
    )
    source = str(Path(croze.__file__).parents[1])
    printed = {
        subprocess.run(
            [sys.executable, "-c", program, source],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=100,
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert len(printed) == 1
    assert b"Engine" in printed.pop()
