"""Jupyter notebooks (nbformat 3 and 4) as text: each cell under a heading line, its outputs bounded."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from croze.documents.values import Extracted, Text, Unreadable, plural

MOST_OUTPUT = 2_000
"""Characters of one output."""
MOST_OUTPUTS = 20
"""Outputs of one cell."""

_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def read_notebook(data: bytes) -> Extracted:
    try:
        found = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable("damaged", f"it is no valid JSON: {error}") from error
    if not isinstance(found, dict):
        raise Unreadable("damaged", "it is JSON, but no notebook.")
    cells = found.get("cells")
    if cells is None:  # nbformat 3
        sheets = found.get("worksheets")
        cells = [c for s in _list(sheets) for c in _list(_dict(s).get("cells"))] if sheets else None
    if not isinstance(cells, list):
        raise Unreadable("damaged", "it is JSON, but no notebook: it has no cells.")
    metadata = _dict(found.get("metadata"))
    language = _dict(metadata.get("language_info")).get("name") or _dict(
        metadata.get("kernelspec")
    ).get("language")
    fence = language if isinstance(language, str) and language.isalnum() else ""
    text = Text()
    for number, cell in enumerate(map(_dict, cells), 1):
        if not text.add(*_cell(number, cell, fence)):
            break
    about = f"Jupyter notebook, {plural(len(cells), 'cell')}"
    return Extracted(text=text.text, about=about, notes=text.notes())


def _cell(number: int, cell: dict[str, Any], fence: str) -> Iterator[str]:
    kind = cell.get("cell_type")
    source = _joined(cell.get("source", cell.get("input")))
    count = cell.get("execution_count", cell.get("prompt_number"))
    ran = f", run as [{count}]" if isinstance(count, int) else ""
    yield f"--- cell {number} ({kind if isinstance(kind, str) else 'unknown'}{ran}) ---"
    if kind != "code":
        yield from (*source.split("\n"), "")
        return
    yield from (f"```{fence}", *source.split("\n"), "```")
    outputs = _list(cell.get("outputs"))
    for output in map(_dict, outputs[:MOST_OUTPUTS]):
        yield from _output(output)
    if len(outputs) > MOST_OUTPUTS:
        yield f"[{len(outputs) - MOST_OUTPUTS} more outputs are left out]"
    yield ""


def _output(output: dict[str, Any]) -> Iterator[str]:
    kind = output.get("output_type")
    if kind in ("error", "pyerr"):
        trace = "\n".join(each for each in _list(output.get("traceback")) if isinstance(each, str))
        said = trace or f"{output.get('ename', '')}: {output.get('evalue', '')}"
        yield from ("Error:", *_bounded(_ESCAPES.sub("", said), tail=True))
        return
    if kind == "stream":
        yield from ("Output:", *_bounded(_ESCAPES.sub("", _joined(output.get("text")))))
        return
    bundle = _dict(output.get("data")) or output
    plain = _joined(bundle.get("text/plain", bundle.get("text")))
    if plain:
        yield from ("Output:", *_bounded(plain))
    for media in bundle:
        if media.startswith("image/") or media in ("png", "jpeg", "svg"):
            yield f"[output of type {media}, {len(_joined(bundle[media])):,} characters, left out]"
        elif media == "text/html" and not plain:
            yield "[output of type text/html left out]"


def _bounded(text: str, *, tail: bool = False) -> list[str]:
    text = text.rstrip("\n")
    if len(text) <= MOST_OUTPUT:
        return text.split("\n")
    note = f"[… {len(text) - MOST_OUTPUT:,} characters of this output are left out …]"
    if tail:
        return [note, *text[-MOST_OUTPUT:].split("\n")]
    return [*text[:MOST_OUTPUT].split("\n"), note]


def _joined(value: object) -> str:
    if isinstance(value, list):
        return "".join(each for each in value if isinstance(each, str))
    return value if isinstance(value, str) else ""


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
