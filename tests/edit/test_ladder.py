"""The ladder, rung by rung: what each forgives, what its new lines become, and what it refuses."""

import pytest

from croze.edit import EditPlan, Refusal, apply, listed_blocks, plan


def tried(text, *blocks):
    return plan(text, listed_blocks([(*one, 0) if len(one) == 2 else one for one in blocks]))


def done(text, *blocks):
    result = tried(text, *blocks)
    assert isinstance(result, EditPlan), result
    return apply(result), result.strategy


def refused(text, *blocks):
    result = tried(text, *blocks)
    assert isinstance(result, Refusal), apply(result)
    return result


CODE = "def total(items):\n    result = 0\n    for item in items:\n        result += item.price\n    return result\n"


def test_blanks_that_search_lacks_stay_in_restated_lines():
    text = "first value = 1  \nsecond = 2\n"
    after = done(text, ("first value = 1\nsecond = 2\n", "first value = 1\nsecond = 3\n"))
    assert after == ("first value = 1  \nsecond = 3\n", "trailing blanks")


def test_blanks_that_the_model_adds_are_not_written():
    after, _ = done("one = 1\ntwo = 2\n", ("one = 1 \ntwo = 2 \n", "one = 1 \nthree = 3 \n"))
    assert after == "one = 1\nthree = 3\n"


def test_typographic_quotes_become_the_files():
    after = done("print('a')\nprint('b')\n", ("print(‘a’)\n", "print(‘c’)\n"))
    assert after == ("print('c')\nprint('b')\n", "typography")


def test_the_files_typographic_quotes_stay_where_the_line_changes_elsewhere():
    after, _ = done("He said “yes” twice.\n", ('He said "yes" twice.\n', 'He said "yes" thrice.\n'))
    assert after == "He said “yes” thrice.\n"


def test_plain_quotes_in_new_words_of_a_typographic_line_are_refused():
    refusal = refused(
        "He said “yes” twice.\n", ('He said "yes" twice.\n', 'He said "yes" and "no".\n')
    )
    assert refusal.code == "ambiguous"


def test_a_uniform_shift_is_undone_in_new_lines_too():
    block = (
        "for item in items:\n    result += item.price\n",
        "for item in items:\n    if item:\n        result += item.price\n",
    )
    after, strategy = done(CODE, block)
    assert strategy == "indentation"
    assert (
        "    for item in items:\n        if item:\n            result += item.price\n    return"
        in after
    )


def test_spaces_become_the_files_tabs():
    text = "func a() {\n\tif b {\n\t\treturn somewhere_else_than_here(b)\n\t}\n}\n"
    block = (
        "    if b {\n        return somewhere_else_than_here(b)\n    }\n",
        "    if b {\n        c()\n        return somewhere_else_than_here(b)\n    }\n",
    )
    assert done(text, block)[0] == text.replace("\t\treturn", "\t\tc()\n\t\treturn")


def test_a_first_line_without_its_indentation_gets_it_back():
    block = ("result = 0\n    for item in items:\n", "result = 1\n    for item in items:\n")
    assert done(CODE, block)[0] == CODE.replace("= 0", "= 1")


def test_one_line_that_could_be_shifted_or_cut_is_refused_where_that_matters():
    text = "class A:\n    def compute_everything_at_once(self):\n        pass\n"
    block = (
        "def compute_everything_at_once(self):\n",
        "def compute_everything_at_once(self):\n    x()\n",
    )
    assert refused(text, block).code == "ambiguous"


def test_new_lines_indented_otherwise_than_the_file_are_refused_without_a_sign():
    text = "a:\n\tx\n\ty\n\tz\nb:\n"
    assert refused(text, ("b:\n", "b:\n    new\n")).code == "ambiguous"
    assert done(text, ("\tz\nb:\n", "\tz\nb:\n\tnew\n"))[0].endswith("b:\n\tnew\n")


def test_an_elided_middle_stands_for_the_lines_between():
    block = (
        "def total(items):\n    ...\n    return result\n",
        "def total(items):\n    ...\n    return result * 2\n",
    )
    assert done(CODE, block) == (CODE.replace("return result", "return result * 2"), "elision")


def test_an_elision_in_replace_alone_is_never_written():
    block = (CODE, "def total(items):\n    ...\n    return result * 2\n")
    assert refused(CODE, block).code == "elision_marker"
    assert (
        refused("a\nb\nc\n", ("a\nb\nc\n", "a\n# ... existing code ...\nc\n")).code
        == "elision_marker"
    )


def test_a_stubs_three_dots_are_code():
    text = "class P:\n    def a(self) -> int:\n        ...\n"
    block = (
        "    def a(self) -> int:\n        ...\n",
        "    def a(self) -> int:\n        ...\n\n    def b(self) -> int:\n        ...\n",
    )
    assert done(text, block)[0].count("...") == 2


def test_an_elided_middle_that_could_end_in_two_places_is_refused():
    text = "start of it here\nalpha\nthe end\nbeta\nthe end\n"
    assert (
        refused(text, ("start of it here\n...\nthe end\n", "start of it here\n...\nTHE END\n")).code
        == "ambiguous"
    )


def test_a_blank_line_more_or_less_away_from_the_change_is_forgiven():
    text = "alpha = compute(1)\n\nbeta = compute(2)\ngamma = compute(3)\ndelta = compute(4)\n"
    wrong = text.replace("\n\n", "\n")
    block = (wrong, wrong.replace("(4)", "(5)"))
    assert done(text, block) == (text.replace("(4)", "(5)"), "blank lines")
    block = (text, text.replace("(4)", "(5)"))
    assert done(wrong, block) == (wrong.replace("(4)", "(5)"), "blank lines")


def test_a_blank_line_less_where_lines_are_put_is_refused():
    text = "alpha = compute(1)\n\nbeta = compute(2)\n"
    block = (
        "alpha = compute(1)\nbeta = compute(2)\n",
        "alpha = compute(1)\nnew = 0\nbeta = compute(2)\n",
    )
    assert refused(text, block).code == "ambiguous"


def test_a_comment_that_search_leaves_out_stays():
    text = "alpha = compute(1)\n# why\nbeta = compute(2)\ngamma = compute(3)\n"
    wrong = text.replace("# why\n", "")
    assert done(text, (wrong, wrong.replace("(3)", "(4)"))) == (
        text.replace("(3)", "(4)"),
        "comment lines",
    )


@pytest.mark.parametrize("wrote", ["retrun result", "return resutl", "returnn result"])
def test_one_slip_in_one_line_is_forgiven(wrote):
    block = (
        f"        result += item.price\n    {wrote}\n",
        "        result += item.price\n    return 1\n",
    )
    if wrote == "return resutl":
        assert done(CODE, block) == (CODE.replace("return result", "return 1"), "one slip")
    else:
        done(CODE, block)


@pytest.mark.parametrize(
    ("wrote", "stands"),
    [
        ("    self.set_name(first_value)", "    self.get_name(first_value)"),
        ("    version = parse_v1(document)", "    version = parse_v2(document)"),
        ("    if first_value <= second_value:", "    if first_value < second_value:"),
        ("    for items in collection_of_all:", "    for item in collection_of_all:"),
        ("    total_amount = minimum + amount", "    total_amount = minimum - amount"),
        ("    decode_everything(first_value)", "    encode_everything(first_value)"),
        ("    return first_value_of(colmun)", "    return other_value_of(column)"),
    ],
)  # fmt: skip
def test_another_name_digit_or_operator_is_no_slip(wrote, stands):
    assert (
        refused(f"def a():\n{stands}\n    done()\n", (f"{wrote}\n", "    pass\n")).code
        == "no_match"
    )


def test_a_slip_against_another_name_of_the_file_is_refused():
    text = "alpha_collumn = 1\nalpha_column_of_it = other_thing\nuse(alpha_column)\n"
    assert isinstance(tried(text, ("use(alpha_collumn)\n", "use(1)\n")), Refusal)


@pytest.mark.parametrize(
    ("wrap", "name"),
    [
        (lambda text: f"```python\n{text}```\n", "code fences"),
        (lambda text: "".join(f"{n}\t{line}\n" for n, line in enumerate(text.splitlines(), 4)), "numbers"),
        (lambda text: "".join(f"{n:>4} | {line}\n" for n, line in enumerate(text.splitlines(), 4)), "numbers"),
        (lambda text: text.replace("<", "&lt;").replace('"', "&quot;"), "entities"),
        (lambda text: text.replace('"', '\\"'), "escapes"),
        (lambda text: text.removesuffix("\n").replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + "\n", "json"),
    ],
)  # fmt: skip
def test_wrapped_and_escaped_text_is_read_on_both_sides(wrap, name):
    text = 'import x\n\ndef a(b):\n    if b < "c":\n        return "d"\n'
    block = ('    if b < "c":\n        return "d"\n', '    if b < "e":\n        return "f"\n')
    after, _ = done(text, (wrap(block[0]), wrap(block[1])))
    assert after == text.replace('"c"', '"e"').replace('"d"', '"f"'), name


def test_what_is_escaped_in_the_file_itself_is_left_alone():
    text = 'a = "&lt;b&gt;"\nb = "c\\"d"\n'
    assert done(text, ('a = "&lt;b&gt;"\n', 'a = "&lt;i&gt;"\n'))[0] == text.replace("b&", "i&")
    assert done(text, ('b = "c\\"d"\n', 'b = "e\\"f"\n'))[0] == text.replace('c\\"d', 'e\\"f')


def test_new_lines_that_may_be_escaped_are_refused_where_nothing_shows_it():
    assert refused("a = 1\nb = 2\n", ("a = 1\n", "if a &lt; b:\n")).code == "ambiguous"
    assert refused("a = 1\nb = 2\n", ("a = 1\n", 'a = \\"x\\"\n')).code == "ambiguous"
    assert refused("a = 1\nb = 2\n", ("a = 1\n", "```\na = 3\n```\n")).code == "ambiguous"
    assert refused("a = 1\nb = 2\n", ("a = 1\n", "1\ta = 3\n2\tb = 3\n")).code == "ambiguous"


def test_a_line_hint_decides_where_it_is_near_and_clear():
    text = "x = 1\n" + "pad\n" * 20 + "x = 1\n"
    assert done(text, ("x = 1\n", "x = 2\n", 22))[0] == text[:-6] + "x = 2\n"
    assert done(text, ("x = 1\n", "x = 2\n", 3))[0] == "x = 2\n" + text[6:]
    for hint in (11, 12, 400):
        assert refused(text, ("x = 1\n", "x = 2\n", hint)).lines == (1, 22)


def test_a_looser_rung_never_breaks_a_tie():
    text = "value = compute()\nother\nvalue = compute()\n    value = compute()\n"
    assert refused(text, ("value = compute()\n", "x\n")).lines == (1, 3)


def test_a_line_above_2000_characters_is_matched_exactly_or_refused():
    long = "x" * 3_000
    assert done(f"{long}\nb\n", (f"{long}\n", "a\n"))[0] == "a\nb\n"
    assert refused(f"  {long}\nb\n", (f"{long}\n", "a\n")).code == "too_long"


def test_blocks_may_build_on_lines_of_an_earlier_one():
    after, _ = done(
        "a = 1\nb = 2\n", ("a = 1\n", "a = first()\n"), ("a = first()\n", "a = second()\n")
    )
    assert after == "a = second()\nb = 2\n"


def test_a_block_does_not_build_on_lines_of_a_later_one():
    refused("a = 1\nb = 2\n", ("a = first()\n", "a = second()\n"), ("a = 1\n", "a = first()\n"))


def test_blocks_may_share_context_and_meet():
    text = "one\ntwo\nthree\nfour\n"
    blocks = (("one\ntwo\n", "ONE\ntwo\n"), ("two\nthree\n", "two\nTHREE\n"))
    assert done(text, *blocks)[0] == "ONE\ntwo\nTHREE\nfour\n"
    blocks = (("one\ntwo\n", "one\nTWO\n"), ("three\n", "new\nthree\n"))
    assert done(text, *blocks)[0] == "one\nTWO\nnew\nthree\nfour\n"


def test_two_blocks_that_add_at_one_point_are_refused_where_the_order_is_open():
    text = "import a\nimport z\n"
    blocks = (("import a\n", "import a\nimport b\n"), ("import a\n", "import a\nimport c\n"))
    assert refused(text, *blocks).code == "overlap"


def test_an_applied_edit_applied_again_is_told_so():
    block = ("    return result\n", "    return round(result, 2)\n")
    once, _ = done(CODE, block)
    again = tried(once, block)
    assert (again.changes, again.notes) == ((), ("Block 1 was already applied at line 5.",))


def test_a_deletion_whose_search_is_misspelt_is_not_taken_as_applied():
    text = "alpha_one()\nbeta_two_and_more()\ngamma_three_and_more()\ndelta_four_and_more()\n"
    search = text.replace("beta_two", "xeta_qwo")
    result = tried(text, (search, text.replace("beta_two_and_more()\n", "")))
    assert isinstance(result, Refusal)
