"""The filter `python -m croze.edit`: a request a line, an answer a line."""

import io
import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.edit.__main__ import answer, run


def ask(**request):
    return answer(json.dumps({"id": 7, "path": "a.py", "lang": "python", **request}).encode())


def test_blocks_in_fields_and_as_text_are_applied():
    fields = ask(form="blocks", before="a\nb\n", blocks=[{"search": "b", "replace": "c"}])
    raw = ask(form="blocks", before="a\nb\n", raw="<<<<<<< SEARCH\nb\n=======\nc\n>>>>>>> REPLACE")
    assert (fields.id, fields.status, fields.after, fields.strategy) == (
        7,
        "applied",
        "a\nc\n",
        "exact",
    )
    assert (raw.status, raw.after) == ("applied", "a\nc\n")


def test_a_line_hint_is_read():
    text = "x\n" + "y\n" * 30 + "x\n"
    done = ask(form="blocks", before=text, blocks=[{"search": "x", "replace": "z", "line": 32}])
    assert done.after == text[:-2] + "z\n"


@pytest.mark.parametrize(
    ("form", "fields", "after"),
    [
        ("line_range", {"edits": [{"start": 2, "end": 2, "text": "c\n"}]}, "a\nc\n"),
        ("line_range", {"edits": [{"start": 2, "end": 1, "text": "c\n"}]}, "a\nc\nb\n"),
        ("whole", {"text": "a\nc\n"}, "a\nc\n"),
        ("patch", {"text": "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"}, "a\nc\n"),
    ],
)  # fmt: skip
def test_the_other_forms_are_applied(form, fields, after):
    done = ask(form=form, before="a\nb\n", **fields)
    assert (done.status, done.after) == ("applied", after)


def test_a_sketch_is_applied():
    before = "".join(f"value_{name} = compute_{name}()\n" for name in "abcdefghij")
    mark = "# ... existing code ...\n"
    lines = before.splitlines(keepends=True)
    sketch = mark + "".join([*lines[2:4], "new = 1\n", *lines[5:7]]) + mark
    done = ask(form="lazy", before=before, text=sketch)
    assert done.after == before.replace(lines[4], "new = 1\n"), done


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("final", ["", "end"])
def test_line_ends_mark_and_final_newline_of_before_are_kept(end, mark, final):
    before = mark + f"a{end}b{end}" + final
    done = ask(form="blocks", before=before, blocks=[{"search": "a\nb", "replace": "a\nc\nd"}])
    assert done.after == mark + f"a{end}c{end}d{end}" + final


def test_mixed_line_ends_are_kept_line_by_line():
    done = ask(
        form="blocks", before="a\r\nb\nc\r\n", blocks=[{"search": "b\r\nc", "replace": "B\r\nc"}]
    )
    assert done.after == "a\r\nB\nc\r\n"


@pytest.mark.parametrize(
    "line",
    [b"{", b"[]", b"7", b"null", b'{"id": 1}', b'{"form": "blocks"}', b"\xff\xfe", b'"' + b"[" * 5_000,
     b"[" * 100_000, b'{"form": "blocks", "before": 3}', b'{"form":"blocks","before":"x","blocks":[{}]}',
     b'{"form":"blocks","before":"x","blocks":{}}', b'{"form":"whole","before":"x"}',
     b'{"form":"line_range","before":"x"}', b'{"form":"patch","before":"x","text":1}',
     b'{"form":"blocks","before":"x"}', b'{"form":"blocks","before":"x\\u0000","blocks":[]}'],
)  # fmt: skip
def test_what_is_no_request_is_refused_with_a_message(line):
    done = answer(line)
    assert done.status == "refused"
    assert done.message
    assert done.after in ("", "x", "x\0")


@pytest.mark.parametrize("half", ["before", "search"])
def test_half_a_surrogate_pair_is_refused_and_given_back(half):
    fields = {"before": "a\ud800\n" if half == "before" else "a\n"}
    blocks = [{"search": "a\ud800" if half == "search" else "a", "replace": "b"}]
    request = {"id": 1, "form": "blocks", "blocks": blocks, **fields}
    out = io.BytesIO()
    run(io.BytesIO(json.dumps(request).encode()), out)
    done = json.loads(out.getvalue())
    assert (done["id"], done["status"], done["after"]) == (1, "refused", fields["before"])


def test_an_unknown_form_is_unsupported():
    done = ask(form="magic", before="x")
    assert (done.status, done.after) == ("unsupported", "x")


@given(st.binary())
def test_no_line_makes_it_fail(line):
    assert answer(line).status == "refused"


def test_a_refusal_gives_the_text_back_and_says_where():
    done = ask(form="blocks", before="a = 1\r\n", blocks=[{"search": "a = 2", "replace": "a = 3"}])
    assert (done.status, done.after, done.strategy) == ("refused", "a = 1\r\n", "no_match")
    assert "line" in done.message


def test_every_line_is_answered_in_order_and_blank_ones_are_passed_over():
    lines = b'{"id":1,"form":"x","before":""}\n\n{"id":2,"form":"x","before":""}'
    out = io.BytesIO()
    run(io.BytesIO(lines), out)
    assert [json.loads(line)["id"] for line in out.getvalue().splitlines()] == [1, 2]


def test_the_program_answers_each_line_before_the_next_is_written():
    with subprocess.Popen(
        [sys.executable, "-m", "croze.edit"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as program:
        for number in range(3):
            blocks = [{"search": "b", "replace": "c"}]
            request = {
                "id": number,
                "form": "blocks",
                "before": "a\n" * 200_000 + "b\n",
                "blocks": blocks,
            }
            program.stdin.write(json.dumps(request).encode() + b"\n")
            program.stdin.flush()
            done = json.loads(program.stdout.readline())
            assert (done["id"], done["status"]) == (number, "applied")
        program.stdin.close()
        assert program.wait(30) == 0
