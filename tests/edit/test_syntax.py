"""Syntax errors that an edit brought in: told by line, old ones not repeated."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from croze.edit.grammar import language, parse
from croze.edit.syntax import LIMIT, SyntaxFinding, new_errors

GOOD = {
    "a.py": "def f(x):\n    return [x]\n",
    "a.js": "function f(x) {\n  return [x];\n}\n",
    "a.ts": "const f = (x: number): number[] => {\n  return [x];\n};\n",
    "a.tsx": "export const A = (): X => {\n  return <b>{[1]}</b>;\n};\n",
    "a.go": "package a\n\nfunc f(x int) []int {\n\treturn []int{x}\n}\n",
    "a.rs": "fn f(x: i32) -> Vec<i32> {\n    vec![x]\n}\n",
    "a.c": "int f(int x) {\n  return g[x];\n}\n",
    "a.java": "class A {\n  int f(int x) {\n    return g[x];\n  }\n}\n",
    "a.json": '{\n  "a": [1, 2]\n}\n',
    "a.css": "a {\n  color: red;\n}\n",
    "a.sh": "if x; then\n  echo $(y)\nfi\n",
}


def needs(path):
    if parse("", language(path)) is None:
        pytest.skip(f"the grammar of {path} is not installed")


@pytest.mark.parametrize("path", GOOD)
def test_a_lost_bracket_is_found_and_good_text_has_no_errors(path):
    needs(path)
    good = GOOD[path]
    assert new_errors("", good, path) == ()
    broken = good.replace("]", "").replace(";\n}", "").replace("(y)", "(y")
    found = new_errors(good, broken, path)
    assert found
    assert all(1 <= one.line <= broken.count("\n") + 1 and one.text for one in found)


def test_an_error_is_told_with_its_line():
    needs("a.py")
    after = "a = 1\n\n\ndef f(:\n    pass\n"
    assert new_errors("a = 1\n", after, "x/a.py") == (SyntaxFinding(4, ") is missing"),)
    assert new_errors("", "x = = 1\n", "a.py") == (SyntaxFinding(1, "unexpected '= 1'"),)


def test_old_errors_are_not_repeated_wherever_they_have_moved():
    needs("a.py")
    before = "def f(:\n    pass\n\n\nx = 1\n"
    assert new_errors(before, "import os\n\n" + before, "a.py") == ()
    both = new_errors(before, "import os\n" + before + "def g(:\n    pass\n", "a.py")
    assert [one.line for one in both] == [7]


def test_a_second_error_of_the_same_words_is_new():
    needs("a.py")
    before = "def f(:\n    pass\n"
    assert len(new_errors(before, before + "\n\n" + before, "a.py")) == 1


def test_what_has_no_grammar_or_is_too_large_is_not_checked():
    assert new_errors("", "((((", "a.unknown") == ()
    assert new_errors("", "((((", "Makefile") == ()
    assert new_errors("", "(" * (LIMIT + 1), "a.py") == ()


def test_deep_nesting_is_no_error_of_ours():
    needs("a.py")
    assert new_errors("", "x = " + "(" * 3_000 + "1" + ")" * 2_999 + "\n", "a.py")


@settings(max_examples=50)
@given(st.text(), st.text(), st.sampled_from(sorted(GOOD)))
def test_no_text_raises(before, after, path):
    for one in new_errors(before, after, path):
        assert 1 <= one.line <= after.count("\n") + 1
