"""The program that reads a document apart: a line of JSON and the document on standard input, a line of
JSON on standard output."""

import os
import resource
import sys

import msgspec

from croze.documents.read import Answer, Failed, Request, read
from croze.documents.values import Unreadable

MEMORY = 1 << 30
"""Bytes of address space."""
CPU_SECONDS = 60


def main() -> None:
    out = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # what a library prints must not get between the answer
    os.dup2(nowhere, 2)
    for limit, most in (
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        _limit(limit, most)
    line, _, data = sys.stdin.buffer.read().partition(b"\n")
    try:
        answer = Answer(read=read(msgspec.json.decode(line, type=Request), data))
    except Unreadable as error:
        answer = Answer(failed=Failed(error.code, error.message, error.hint))
    except MemoryError:
        answer = Answer(failed=Failed("too_large", "reading it takes more memory than is allowed."))
    except RecursionError:
        answer = Answer(failed=Failed("damaged", "it is nested too deeply."))
    except Exception as error:  # noqa: BLE001 - a parser's failure on a document is the answer
        said = " ".join(str(error).split())[:200]
        answer = Answer(
            failed=Failed("damaged", f"it could not be read: {type(error).__name__}: {said}")
        )
    with open(out, "wb") as stream:
        stream.write(msgspec.json.encode(answer))


def _limit(limit: int, most: int) -> None:
    _, hard = resource.getrlimit(limit)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(limit, (most, most))


if __name__ == "__main__":
    main()
