"""read_file: numbered lines within bounds, and a way on for all that can't be read."""

import hashlib
import os
import re

import pytest

from croze.tools.builtin.files import MAX_CHARACTERS, ReadFile
from croze.types.parts import ToolCall


async def read(context, path, **arguments):
    return context.remember(await ReadFile(path=path, **arguments).run(context))


def write(context, path, data):
    target = context.workspace.root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data if isinstance(data, bytes) else data.encode())
    return target


async def test_lines_are_numbered_and_the_hash_of_the_file_is_observed(fake_context):
    write(fake_context, "src/a.py", "one\n\tthree  \n")
    result = await read(fake_context, "src/a.py")
    assert (result.ok, result.text) == (True, "1\tone\n2\t\tthree  ")
    assert result.message == "src/a.py, lines 1-2 of 2"
    assert result.observed == {"src/a.py": hashlib.sha256(b"one\n\tthree  \n").hexdigest()}
    assert result.data == {"path": "src/a.py", "start_line": 1, "end_line": 2, "lines": 2}


async def test_a_range_is_inclusive_and_may_reach_beyond_the_end(fake_context):
    write(fake_context, "a", "".join(f"{n}\n" for n in range(1, 10)))
    assert (await read(fake_context, "a", start_line=3, end_line=4)).text == "3\t3\n4\t4"
    assert (await read(fake_context, "a", start_line=9, end_line=99)).text == "9\t9"
    assert (await read(fake_context, "a", end_line=1)).text == "1\t1"


async def test_a_range_that_is_not_there_is_an_error_with_the_number_of_lines(fake_context):
    write(fake_context, "a", "1\n2\n")
    beyond = await read(fake_context, "a", start_line=3)
    assert (beyond.ok, beyond.code) == (False, "no_such_lines")
    assert "2 lines" in beyond.message
    assert (await read(fake_context, "a", start_line=2, end_line=1)).code == "no_such_lines"


async def test_following_the_notes_reads_every_line_once(fake_context):
    lines = [f"line {n} " + "x" * (n % 150) for n in range(1, 1735)]
    write(fake_context, "a", "\n".join(lines))
    got, start = [], 1
    while start:
        result = await read(fake_context, "a", start_line=start)
        got += [row.split("\t", 1)[1] for row in result.text.split("\n")]
        assert len(result.text) <= MAX_CHARACTERS
        assert result.text.count("\n") < 500
        on = re.search(r"start_line=(\d+)", result.truncated or "")
        start = int(on[1]) if on else 0
    assert got == lines


async def test_very_long_lines_are_shortened_and_say_by_how_much(fake_context):
    write(fake_context, "min.js", "a" * 1_000_000 + "\nb\n")
    result = await read(fake_context, "min.js")
    assert result.text == "1\t" + "a" * 2_000 + "… [+998,000 characters]"
    assert "start_line=2" in result.truncated


async def test_a_line_deep_in_a_large_file_is_read_without_holding_it(fake_context):
    data = b"".join(b"%09d\n" % n for n in range(1, 1_200_001))
    write(fake_context, "log", data)
    result = await read(fake_context, "log", start_line=1_100_000, end_line=1_100_002)
    assert result.text == "\n".join(f"{n}\t{n:09d}" for n in range(1_100_000, 1_100_003))
    assert result.data["lines"] == 1_200_000
    assert result.observed == {"log": hashlib.sha256(data).hexdigest()}
    assert (await read(fake_context, "log")).text.count("\n") == 499
    assert (await read(fake_context, "log", query="7")).code == "too_large"
    assert (await read(fake_context, "log", start_line=1_200_001)).code == "no_such_lines"


async def test_a_query_shows_its_lines_and_those_near(fake_context):
    write(fake_context, "a", "".join(f"line {n}\n" for n in range(1, 101)) + "Needle\n")
    result = await read(fake_context, "a", query="needle")
    assert [row.split("\t")[0] for row in result.text.split("\n")] == [
        "96",
        "97",
        "98",
        "99",
        "100",
        "101",
    ]
    none = await read(fake_context, "a", query="nothing")
    assert (none.ok, none.text) == (True, "")


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (b"\xef\xbb\xbf\xc3\xa4\r\n", "(BOM, CRLF)"),
        (b"\xe4\n", "(latin-1)"),
        (b"\xff\xfe\xe4\x00\r\x00\n\x00", "(utf-16-le, CRLF)"),
        ("ä\n".encode() * 1 + b"b\r\n", "(mixed line ends)"),
    ],
)
async def test_encodings_are_read_as_text_and_told(fake_context, data, note):
    write(fake_context, "a.txt", data)
    result = await read(fake_context, "a.txt")
    assert result.text.startswith("1\tä")
    assert result.message.endswith(note)


async def test_an_empty_file_is_said_to_be_empty(fake_context):
    write(fake_context, "a", "")
    result = await read(fake_context, "a")
    assert (result.ok, result.message) == (True, "a is empty.")


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.bmp", b"BM" + b"\0" * 98, "a BMP image of 100 bytes"),
        ("a.jar", b"PK\x03\x04" + b"\0" * 6, "a Java archive of 10 bytes"),
        ("a.out", b"\x7fELF\0", "an ELF program"),
        ("a.bin", b"x\0y", "a binary file of 3 bytes"),
        ("big.bin", b"\0" * (9 << 20), "a binary file of 9,437,184 bytes"),
    ],
)
async def test_what_is_no_text_is_refused_with_type_and_size(fake_context, name, data, says):
    write(fake_context, name, data)
    result = await read(fake_context, name)
    assert (result.ok, result.code) == (False, "binary")
    assert says in result.message
    assert result.observed == {}


async def test_a_folder_leads_to_list_files_and_a_pipe_does_not_block(fake_context):
    write(fake_context, "src/a", "")
    os.mkfifo(fake_context.workspace.root / "pipe")
    folder = await read(fake_context, "src")
    assert (folder.ok, "list_files" in folder.text) == (False, True)
    assert (await read(fake_context, "pipe")).code == "not_a_file"


async def test_a_missing_file_brings_the_near_names(fake_context):
    write(fake_context, "src/deep/config.py", "")
    write(fake_context, "src/parser.py", "")
    same = await read(fake_context, "config.py")
    assert (same.code, same.text) == ("file_not_found", "Did you mean src/deep/config.py?")
    assert (await read(fake_context, "src/parsers.py")).text == "Did you mean src/parser.py?"
    assert "find_files" in (await read(fake_context, "zzz.qqq")).text


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../x", "path_traversal_blocked"),
        ("/etc/passwd", "path_traversal_blocked"),
        ("", "invalid_path"),
        ("a\0", "invalid_path"),
    ],
)
async def test_bad_paths_are_results(fake_context, path, code):
    result = await read(fake_context, path)
    assert (result.ok, result.code) == (False, code)
    assert result.message


async def test_the_digest_is_the_range_with_its_numbers(fake_context):
    write(fake_context, "a", "x\n")
    result = await read(fake_context, "a")
    assert ReadFile.digest(ToolCall("1", "read_file"), result) == "a, lines 1-1 of 1\n1\tx"
