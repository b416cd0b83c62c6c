"""Outlines: against Python's own parser, and by tables written by hand for the other languages."""

import ast
import importlib.util
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from croze.retrieval.outline import LARGEST, SIGNATURE, outline, unsuited
from croze.retrieval.symbols import DEFINITIONS, REFERENCES

DEFINING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def listed(source, language):
    return [
        (d.depth, d.kind, d.name, d.start, d.end)
        for d in outline(source.encode(), language).definitions
    ]


def package_files(name):
    place = importlib.util.find_spec(name).submodule_search_locations[0]
    return sorted(Path(place).rglob("*.py"))


def by_ast(source):
    found = []
    pending = [(ast.parse(source), 0)]
    while pending:
        parent, depth = pending.pop()
        for child in ast.iter_child_nodes(parent):
            inside = isinstance(child, DEFINING)
            if inside:
                found.append((child.lineno, child.name, child.end_lineno, depth))
            pending.append((child, depth + inside))
    return sorted(found)


@pytest.mark.parametrize("package", ["click", "pathspec", "hypothesis", "jinja2", "msgspec"])
def test_python_definitions_are_those_that_pythons_own_parser_sees(package):
    compared = 0
    for path in package_files(package):
        data = path.read_bytes()
        if len(data) > LARGEST:
            continue
        source = data.decode().replace("\r\n", "\n")
        lines = source.split("\n")
        own = sorted(
            (d.start, d.name, d.end, d.depth)
            for d in outline(data, "python").definitions
            if d.kind in ("class", "function", "method")
        )
        theirs = by_ast(source)
        assert [(one[0], one[1], one[3]) for one in own] == [
            (one[0], one[1], one[3]) for one in theirs
        ], path
        for (_, name, end, _), (_, _, real, _) in zip(own, theirs, strict=True):
            beyond = lines[real:end]  # comments at the end of a block belong to it here
            assert end >= real, (path, name)
            assert all(not line.strip() or line.strip()[0] == "#" for line in beyond), (path, name)
        compared += len(own)
    assert compared > 20


TABLES = {
    "python": (
        "LIMIT = 1\nname = 2\n@decorate\nclass A(B,\n        C):\n    async def f(self): pass\n\n"
        "    class In:\n        x = 1\ndef g():\n    def h():\n        pass\n",
        [
            (0, "constant", "LIMIT", 1, 1), (0, "class", "A", 4, 9), (1, "method", "f", 6, 6),
            (1, "class", "In", 8, 9), (0, "function", "g", 10, 12), (1, "function", "h", 11, 12),
        ],
    ),
    "javascript": (
        "class A extends B {\n  m(a) { }\n  static get x() { return 1 }\n  #p = 3\n  f = () => 2\n}\n"
        "export default function foo() {\n}\nconst k = async (a) => a, z = 1;\n"
        "export const TABLE = [\n 1,\n];\nvar o = { m() {}, n: function() {} };\n"
        "module.exports.h = () => 3;\nfunction* gen() {}\nconst local = 5;\n",
        [
            (0, "class", "A", 1, 6), (1, "method", "m", 2, 2), (1, "method", "x", 3, 3),
            (1, "method", "f", 5, 5), (0, "function", "foo", 7, 8), (0, "function", "k", 9, 9),
            (0, "constant", "TABLE", 10, 12), (0, "method", "m", 13, 13), (0, "method", "n", 13, 13),
            (0, "function", "h", 14, 14), (0, "function", "gen", 15, 15),
        ],
    ),
    "typescript": (
        "interface I {\n  a: string;\n  m(): void\n}\ntype T = { a: 1 }\nenum E { A, B }\n"
        "namespace N.M {\n  export function f(): void {}\n}\n"
        "export abstract class C<T> implements I {\n  abstract q(): void;\n"
        '  private m(x: number): string { return "" }\n  run = async () => 1\n}\n'
        "declare function d(): void;\n",
        [
            (0, "interface", "I", 1, 4), (1, "method", "m", 3, 3), (0, "type", "T", 5, 5),
            (0, "enum", "E", 6, 6), (0, "module", "N.M", 7, 9), (1, "function", "f", 8, 8),
            (0, "class", "C", 10, 14), (1, "method", "q", 11, 11), (1, "method", "m", 12, 12),
            (1, "method", "run", 13, 13), (0, "function", "d", 15, 15),
        ],
    ),
    "tsx": (
        "export const Card = ({ a }: Props) => <div>{a}</div>;\nfunction App() { return <Card a={1} /> }\n",
        [(0, "function", "Card", 1, 1), (0, "function", "App", 2, 2)],
    ),
    "go": (
        "package p\n\nfunc F(a int) (b string) {\n\treturn\n}\n\nfunc (s *S) M() {}\n\n"
        "type S struct {\n\tA int\n}\n\ntype (\n\tI interface {\n\t\tX()\n\t}\n\tJ int\n)\n\n"
        "const K = 1\n\nvar (\n\tv = 2\n)\n\ntype A = S\n",
        [
            (0, "function", "F", 3, 5), (0, "method", "M", 7, 7), (0, "struct", "S", 9, 11),
            (0, "interface", "I", 14, 16), (1, "method", "X", 15, 15), (0, "type", "J", 17, 17),
            (0, "constant", "K", 20, 20), (0, "variable", "v", 23, 23), (0, "type", "A", 26, 26),
        ],
    ),
    "rust": (
        "pub struct S {\n    a: u8,\n}\nenum E { A }\ntrait T {\n    fn r(&self);\n    fn d(&self) {}\n}\n"
        "impl T for S<u8> {\n    fn r(&self) {}\n}\nmod m {\n    pub fn f() {}\n}\nmod other;\n"
        "macro_rules! mac { () => {} }\nconst C: u8 = 1;\nstatic D: u8 = 1;\ntype X = u8;\n",
        [
            (0, "struct", "S", 1, 3), (0, "enum", "E", 4, 4), (0, "trait", "T", 5, 8),
            (1, "method", "r", 6, 6), (1, "method", "d", 7, 7), (0, "impl", "S<u8>", 9, 11),
            (1, "method", "r", 10, 10), (0, "module", "m", 12, 14), (1, "function", "f", 13, 13),
            (0, "macro", "mac", 16, 16), (0, "constant", "C", 17, 17), (0, "constant", "D", 18, 18),
            (0, "type", "X", 19, 19),
        ],
    ),
    "c": (
        "#define MAX(a) a\n#define N 3\nstruct s {\n  int a;\n};\nenum e { A, B };\n"
        "typedef struct {\n  int b;\n} t;\ntypedef int (*fp)(int);\n"
        "static int *f(int a, char **b)\n{\n  return 0;\n}\nint proto(void);\nchar *other(int);\nint g = 3;\n",
        [
            (0, "macro", "MAX", 1, 1), (0, "macro", "N", 2, 2), (0, "struct", "s", 3, 5),
            (0, "enum", "e", 6, 6), (0, "type", "t", 7, 9), (0, "type", "fp", 10, 10),
            (0, "function", "f", 11, 14), (0, "prototype", "proto", 15, 15),
            (0, "prototype", "other", 16, 16),
        ],
    ),
    "java": (
        "package p;\n@A\npublic class C<T> extends D {\n  int x;\n  C() {}\n  @Override\n"
        "  public void m(int a) {\n  }\n  enum E { P }\n  interface I { void q(); }\n  record R(int a) {}\n}\n"
        "@interface Ann {}\n",
        [
            (0, "class", "C", 2, 12), (1, "constructor", "C", 5, 5), (1, "method", "m", 6, 8),
            (1, "enum", "E", 9, 9), (1, "interface", "I", 10, 10), (2, "method", "q", 10, 10),
            (1, "record", "R", 11, 11), (0, "annotation", "Ann", 13, 13),
        ],
    ),
    "bash": (
        "f() {\n  echo\n}\nfunction g { :; }\nA=1\n",
        [(0, "function", "f", 1, 3), (0, "function", "g", 4, 4)],
    ),
    "css": (
        "@media (a) {\n  .x > a, #id { color: red }\n}\n:root { --a: 1 }\n"
        "@keyframes k {\n  from { a: b }\n}\n",
        [
            (0, "media", "@media (a)", 1, 3), (1, "rule", ".x > a, #id", 2, 2),
            (0, "rule", ":root", 4, 4), (0, "keyframes", "k", 5, 7),
        ],
    ),
    "html": (
        '<html>\n<body id="top">\n<h1>Title <b>x</b></h1>\n<section id="s">\n<h2>Sub</h2>\n</section>\n'
        "</body></html>\n",
        [
            (0, "id", "top", 2, 7), (1, "heading", "Title x", 3, 3), (1, "id", "s", 4, 6),
            (2, "heading", "Sub", 5, 5),
        ],
    ),
    "json": (
        '{\n "a": {\n  "b": [1, {"c": 2}]\n },\n "d": 3\n}\n',
        [(0, "key", "a", 2, 4), (1, "key", "b", 3, 3), (0, "key", "d", 5, 5)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("language", sorted(DEFINITIONS))
def test_each_language_lists_its_definitions_with_lines_and_depth(language):
    source, expected = TABLES[language]
    assert listed(source, language) == expected
    assert listed(source.replace("\n", "\r\n"), language) == expected
    assert not outline(source.encode(), language).broken


@pytest.mark.parametrize("language", sorted(DEFINITIONS))
def test_nothing_gives_nothing(language):
    found = outline(b"", language)
    assert (found.lines, found.definitions, found.references) == (0, (), {})


@pytest.mark.parametrize(
    ("language", "source", "signature"),
    [
        ("python", "def f(\n    a: int,\n    b: str = '',\n) -> None:\n    pass\n", "def f(a: int, b: str = '') -> None"),
        ("javascript", "export const k = async (a) => a;\n", "export const k = async (a) =>"),
        ("go", "type S struct {\n\tA int\n}\n", "type S struct"),
        ("c", "static int *f(int a)\n{\n}\n", "static int *f(int a)"),
        ("html", '<div class="x" id="s">a</div>', '<div class="x" id="s">'),
        ("css", "a, b { c: d }", "a, b"),
    ],
)  # fmt: skip
def test_a_signature_is_the_head_on_one_line(language, source, signature):
    assert [d.signature for d in outline(source.encode(), language).definitions] == [signature]


def test_a_long_signature_is_cut():
    source = f"def f({', '.join(f'argument_{n}' for n in range(99))}): pass"
    (found,) = outline(source.encode(), "python").definitions
    assert len(found.signature) == SIGNATURE
    assert found.signature.endswith("…")


@pytest.mark.parametrize(
    ("language", "source", "references"),
    [
        (
            "python",
            "from os import path as p\nfrom .a import helper\nclass A(Base):\n    def f(self, local: Type):\n"
            "        helper(local)\n        local.method()\n        return mod.Thing, helper(1)\n",
            {"path@os": 1, "helper": 3, "Base": 1, "Type": 1, ".method": 1, "Thing": 1},
        ),
        ("javascript", "import {run} from './a'; run(x.go()); new Thing();", {"run": 2, "Thing": 1}),
        ("typescript", "class A extends Base { x: Kind = make() }", {"Base": 1, "Kind": 1, "make": 1}),
        ("go", "package p\nfunc f(a Kind) { run(); a.Walk(); Other{} }", {"Kind": 1, "run": 1, "Walk": 1, "Other": 1}),
        ("rust", "use a::Thing; fn f(k: Kind) { run(); m::walk(); k.go_on(); }", {"Thing": 1, "Kind": 1, "run": 1, "walk": 1, ".go_on": 1}),
        ("c", "kind_t f(void) { run(MAX_N); }", {"kind_t": 1, "run": 1, "MAX_N": 1}),
        ("java", "class A extends Base { Kind k = Other.make(); }", {"Base": 1, "Kind": 1, "Other": 1, ".make": 1}),
        ("bash", "greet a; greet b", {"greet": 2}),
    ],
)  # fmt: skip
def test_references_are_calls_imports_and_types(language, source, references):
    assert outline(source.encode(), language).references == references


def test_broken_syntax_is_told_and_what_stands_beside_it_is_found():
    source = "def a():\n    pass\n\nclass B(:\n    x = = 1\n\ndef c():\n    return 1\n"
    found = outline(source.encode(), "python")
    assert found.broken
    assert {"a", "c"} <= {d.name for d in found.definitions}


@given(st.sampled_from(sorted(DEFINITIONS)), st.data())
@settings(deadline=None, max_examples=150)
def test_any_text_gives_an_outline_whose_lines_are_in_it_and_whose_nesting_is_sound(language, data):
    source, _ = TABLES[language]
    cuts = st.integers(0, len(source))
    first, second = sorted((data.draw(cuts), data.draw(cuts)))
    noise = data.draw(st.text("{}()[]<>;:=\n\"'#x é\0", max_size=8))
    text = (source[:first] + noise + source[second:]).encode()
    found = outline(text, language)
    depth = -1
    for one in found.definitions:
        assert 1 <= one.start <= one.end <= found.lines
        assert 0 <= one.depth <= depth + 1
        depth = one.depth
    starts = [one.start for one in found.definitions]
    assert starts == sorted(starts)
    assert outline(text, language) == found


@given(st.binary(max_size=200), st.sampled_from(sorted(DEFINITIONS)))
@settings(deadline=None)
def test_bytes_of_any_kind_are_no_fault(data, language):
    assert outline(data, language) is not None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"x = 1\n", ""),
        (b"", ""),
        (b"\0", "binary"),
        (b"// Code generated by protoc. DO NOT EDIT.\npackage p\n", "generated"),
        (b"x" * 6_000 + b"\n" + b"y\n" * 1_000, "minified"),
        (b"a=1;" * 500, "minified"),
        (b"#" * (LARGEST + 1), "too large"),
    ],
)
def test_generated_minified_and_large_files_are_told_apart(data, reason):
    assert unsuited(data, named=False) == reason
    assert unsuited(data, named=True) == (reason if reason in ("binary", "too large") else "")


def test_languages_without_references_have_no_part_in_maps():
    assert set(DEFINITIONS) - set(REFERENCES) == {"css", "html", "json"}
