"""The edit engine as a filter: one request a line on the input, one answer a line on the output."""

import json
import sys
import time
from typing import IO, Any, Literal

import msgspec

from croze.edit.blocks import listed_blocks, parse_blocks
from croze.edit.patch import PatchEdit
from croze.edit.plan import Edit, plan
from croze.edit.ranges import LineRange, RangeEdit
from croze.edit.sketch import SketchEdit
from croze.edit.source import restored, source_of
from croze.edit.values import EditPlan, Refusal
from croze.edit.whole import WholeEdit

_FORMS = ("blocks", "line_range", "lazy", "whole", "patch")


class Answer(msgspec.Struct, frozen=True):
    """What became of a request. `after` is `before` where nothing was applied; `ms` is the time that
    the edit took; `strategy` names how it was placed, or why it was refused."""

    id: Any
    status: Literal["applied", "refused", "unsupported"]
    after: str
    ms: float = 0.0
    message: str = ""
    strategy: str = ""


class _Block(msgspec.Struct):
    search: str
    replace: str
    line: int | None = None


class _Range(msgspec.Struct):
    start: int
    end: int
    text: str
    expect: str | None = None


class _Request(msgspec.Struct):
    form: str
    before: str
    id: Any = None
    path: str | None = None
    lang: str | None = None
    blocks: list[_Block] | None = None
    raw: str | None = None
    edits: list[_Range] | None = None
    text: str | None = None


def answer(line: bytes) -> Answer:
    """The answer to one request; a line that is none is refused."""
    try:
        request = msgspec.json.decode(line, type=_Request, strict=True)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _unreadable(line, str(error))
    if request.form not in _FORMS:
        message = f"the form {request.form!r} is none of {', '.join(_FORMS)}"
        return Answer(request.id, "unsupported", request.before, message=message)
    began = time.perf_counter()
    source = source_of(request.before)
    if source is None:
        result: EditPlan | Refusal = Refusal("encoding", "The text is binary. Nothing was changed.")
    else:
        edit = _edit(request)
        result = edit if isinstance(edit, Refusal) else plan(source.text, edit)
    ms = round((time.perf_counter() - began) * 1_000, 3)
    if isinstance(result, Refusal) or source is None:
        assert isinstance(result, Refusal)
        told = "\n".join(part for part in (result.message, result.text) if part)
        return Answer(request.id, "refused", request.before, ms, told, result.code)
    after = restored(source, result)
    ms = round((time.perf_counter() - began) * 1_000, 3)
    return Answer(request.id, "applied", after, ms, "\n".join(result.notes), result.strategy)


def _edit(request: _Request) -> "Edit | Refusal":
    """The edit of a request; refused where the fields of its form aren't there."""
    if request.form == "blocks":
        if request.blocks is not None:
            return listed_blocks((one.search, one.replace, one.line or 0) for one in request.blocks)
        if request.raw is not None:
            return parse_blocks(request.raw)
        return _lacking("blocks", "malformed_block", "blocks or raw")
    if request.form == "line_range":
        if request.edits is None:
            return _lacking("line_range", "malformed_range", "edits")
        edits = (LineRange(one.start, one.end, one.text, one.expect) for one in request.edits)
        return RangeEdit(tuple(edits))
    if request.text is None:
        return _lacking(request.form, "malformed_patch", "text")
    path = request.path or _name(request.lang)
    if request.form == "patch":
        return PatchEdit(request.text)
    if request.form == "lazy":
        return SketchEdit(request.text, path)
    return WholeEdit(request.text, path)


def _name(lang: str | None) -> str:
    """A file name of a language, for a request without a path."""
    return f"file.{_ENDINGS.get(lang.lower(), lang.lower())}" if lang else ""


_ENDINGS = {
    "python": "py", "javascript": "js", "typescript": "ts", "rust": "rs", "ruby": "rb",
    "markdown": "md", "c++": "cpp", "c#": "cs", "kotlin": "kt", "shell": "sh", "bash": "sh",
}  # fmt: skip


def _lacking(
    form: str, code: Literal["malformed_block", "malformed_range", "malformed_patch"], field: str
) -> Refusal:
    return Refusal(
        code, f"A request of the form {form} needs the field {field}. Nothing was changed."
    )


def _unreadable(line: bytes, why: str) -> Answer:
    """The answer to a line that is no request, with the id and the text that it may have."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    fields = found if isinstance(found, dict) else {}
    before = fields.get("before")
    after = before if isinstance(before, str) else ""
    return Answer(
        fields.get("id"), "refused", after, message=f"Not a request: {why}", strategy="malformed"
    )


def run(lines: IO[bytes], out: IO[bytes]) -> None:
    """Answer every line, flushed one by one. Blank lines are passed over."""
    for line in lines:
        if line.strip():
            out.write(_encoded(answer(line)) + b"\n")
            out.flush()


def _encoded(done: Answer) -> bytes:
    try:
        return msgspec.json.encode(done)
    except UnicodeEncodeError:
        # Half a surrogate pair, which only an escape can write.
        return json.dumps(msgspec.structs.asdict(done)).encode()


if __name__ == "__main__":
    try:
        run(sys.stdin.buffer, sys.stdout.buffer)
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(1)
