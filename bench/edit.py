"""The edit engine without I/O: what placing and refusing edits costs, and what becomes of perturbed ones.

Run: python bench/edit.py [CASES]. Each line: name, value, unit, target; then a table of outcomes.
"""

import random
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from croze.edit import EditPlan, Refusal, apply, listed_blocks, plan
from croze.edit.patch import PatchEdit
from croze.edit.plan import Edit
from croze.edit.ranges import LineRange, RangeEdit
from croze.edit.values import BlockEdit
from croze.edit.whole import WholeEdit
from figures import figure
from tests.edit.perturb import CORPUS, DECIDED, DOUBTFUL, Case, perturbed

CASES = 300


def grown(text: str, size: int) -> str:
    """`text` over and over, each time with names of its own, up to about `size` characters."""
    parts, length = [], 0
    while length < size:
        part = "".join(
            f"{line} {len(parts)}\n" if line.strip() else "\n" for line in text.splitlines()
        )
        parts.append(part)
        length += len(part)
    return "".join(parts)


def spent(text: str, edit: Edit) -> float:
    """Milliseconds of one plan and, where it fits, one application."""
    began = time.perf_counter()
    planned = plan(text, edit)
    if isinstance(planned, EditPlan):
        apply(planned)
    return (time.perf_counter() - began) * 1e3


def spread(name: str, times: Sequence[float], median: str = "< 1", high: str = "< 10") -> None:
    figure(f"{name}: median", statistics.median(times), "ms", median)
    figure(f"{name}: p95", sorted(times)[int(len(times) * 0.95)], "ms", high)


def blocks_of(case: Case) -> BlockEdit:
    edit = listed_blocks(case.blocks)
    assert isinstance(edit, BlockEdit)
    return edit


def kinds(size: int, count: int) -> None:
    """Every form on files of about `size` characters."""
    chance = random.Random(size)
    texts = [grown(text, size) for text in CORPUS.values()]

    def about(make: Callable[[list[str], int], Edit]) -> list[float]:
        times = []
        for _ in range(count):
            text = chance.choice(texts)
            lines = text.splitlines()
            times.append(spent(text, make(lines, chance.randrange(3, len(lines) - 6))))
        return times

    def block(lines: list[str], at: int, change: Callable[[str], str]) -> Edit:
        old = [change(line) for line in lines[at - 3 : at + 4]]
        search = "".join(f"{line}\n" for line in old)
        new = "".join(f"{line}\n" for line in [*old[:3], "new line", *old[4:]])
        edit = listed_blocks([(search, new, 0)])
        assert isinstance(edit, BlockEdit)
        return edit

    def patch(lines: list[str], at: int) -> Edit:
        rows = [f" {line}" for line in lines[at - 3 : at]]
        rows += [f"-{lines[at]}", "+new line", *(f" {line}" for line in lines[at + 1 : at + 4])]
        return PatchEdit(
            f"--- a/f\n+++ b/f\n@@ -{at - 2},7 +{at - 2},7 @@\n" + "\n".join(rows) + "\n"
        )

    name = f"{size // 1_000} kB"
    spread(f"{name}, block, exact", about(lambda lines, at: block(lines, at, str)))
    spread(f"{name}, block, shifted", about(lambda lines, at: block(lines, at, "  {}".format)))
    spread(
        f"{name}, block, nowhere",
        about(lambda lines, at: block(lines, at, lambda line: f"{line[:-4]}xyz {line[:9]}")),
    )
    spread(
        f"{name}, line range",
        about(lambda lines, at: RangeEdit((LineRange(at, at + 2, "new\n", None),))),
    )
    spread(
        f"{name}, whole file",
        about(lambda lines, at: WholeEdit("\n".join([*lines[:at], "new", *lines[at:]]) + "\n")),
    )
    spread(f"{name}, unified diff", about(patch))


def large() -> None:
    """Files of 100,000 lines, and a line of 1 MB."""
    lines = [f"    value_{n} = compute_{n % 977}(first_{n}, {n})" for n in range(100_000)]
    text = "\n".join(lines) + "\n"
    edits = {
        "exact": "\n".join(lines[50_000:50_007]) + "\n",
        "shifted": "\n".join(line.strip() for line in lines[50_000:50_007]) + "\n",
        "refused, like nothing": "something else entirely\nand more of it\n",
        "refused, one line off": "\n".join(
            [*lines[50_000:50_006], "other_thing()", *lines[50_008:50_011]]
        ),
        "refused, many times": "",
    }
    for name, search in edits.items():
        times = []
        for _ in range(5):
            if name == "refused, many times":
                edit, on = (
                    listed_blocks([("same line here\n", "x\n", 0)]),
                    "same line here\n" * 100_000,
                )
            else:
                edit, on = listed_blocks([(search, "new\n", 0)]), text
            assert not isinstance(edit, Refusal)
            times.append(spent(on, edit))
        figure(f"100,000 lines, {name}", statistics.median(times), "ms", "< 100")
    edit = listed_blocks([("missing line of text\n", "x\n", 0)])
    assert not isinstance(edit, Refusal)
    wide = "word " * 200_000
    figure("a line of 1 MB, refused", spent(f"a\n{wide}\nb\n", edit), "ms", "< 100")
    tracemalloc.start()
    spent(text, edit)
    figure("memory for refusing in 100,000 lines", tracemalloc.get_traced_memory()[1] / 1e6, "MB")
    tracemalloc.stop()
    figure("the text itself", len(text) / 1e6, "MB")


def outcomes(count: int) -> None:
    """What becomes of perturbed edits of the corpus. `wrong` is a text that was not meant."""
    print(f"\n{'perturbation':<46}{'right':>8}{'refused':>9}{'wrong':>7}{'right %':>9}")
    for title, group in (("decided by the text", DECIDED), ("not decided by it", DOUBTFUL)):
        sums = [0, 0, 0]
        for kind in group:
            tally = [0, 0, 0]
            for seed in range(count):
                case = perturbed(random.Random(f"bench {kind} {seed}"), kind)
                if case is not None:
                    tally[outcome(case)] += 1
            row(kind, tally)
            sums = [a + b for a, b in zip(sums, tally, strict=True)]
        row(f"all that is {title}", sums)
        print()


def outcome(case: Case) -> int:
    """0 right, 1 refused, 2 wrong. Where only a refusal is right, or nothing is to be done, it is right."""
    meant = case.before if case.after is None else case.after
    planned = plan(case.before, blocks_of(case))
    if isinstance(planned, Refusal):
        return 0 if meant == case.before else 1
    return 0 if apply(planned) == meant else 2


def row(name: str, tally: Sequence[int]) -> None:
    right, refused, wrong = tally
    share = 100 * right / max(1, sum(tally))
    print(f"{name:<46}{right:>8}{refused:>9}{wrong:>7}{share:>9.1f}", flush=True)


def main() -> None:
    import difflib  # noqa: F401 - loaded when first needed; its load isn't what is measured

    count = int(sys.argv[1]) if len(sys.argv) > 1 else CASES
    for size in (6_000, 60_000):
        kinds(size, count)
    large()
    outcomes(count)


if __name__ == "__main__":
    main()
