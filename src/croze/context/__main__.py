"""`python -m croze.context`: a context policy behind JSON lines on standard input and output."""

import argparse
import os
import sys

from croze.context.adapter import Adapter
from croze.context.policies import POLICIES


def main() -> int:
    """Answer each line until the input ends; gives the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m croze.context",
        description="Reads a conversation as JSON lines and answers each call with the context to send.",
    )
    parser.add_argument(
        "--policy", choices=sorted(POLICIES), default="batch", help="default: %(default)s"
    )
    options = parser.parse_args()
    adapter = Adapter(options.policy)
    out = sys.stdout.buffer
    try:
        for line in sys.stdin.buffer:
            answer = adapter.answer(line)
            if answer is not None:
                out.write(answer + b"\n")
                out.flush()
    except BrokenPipeError:  # the reader has gone; nothing is left to say, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
