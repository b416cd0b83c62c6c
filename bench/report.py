"""What `croze context` costs on long sessions: a report, breaks, receipts, and what-if over the log.

Run: python bench/report.py [STEPS]. Each line: name, value, unit, target.
"""

import random
import sys

from croze.context.breaks import breaks_of
from croze.context.receipts import receipts_of
from croze.context.report import report_of
from croze.context.requests import calls_of, find_call, moment_of, rebuild
from croze.context.whatif import Scenario, what_if
from croze.context.why import why
from figures import figure, timed
from tests.context.recording import Recording, info


def session(steps: int) -> Recording:
    """Reads, searches and edits with texts of 1 to 6 kB; a compaction every 200 steps."""
    dice = random.Random(7)
    log = Recording(info(window=4_000_000), system="You are croze. " * 800)
    log.user("Rename compute_total in src/part_0.py and its callers.")
    names = [f"compute_{n}" for n in range(400)]
    sent = 0
    for number in range(steps):
        name, path = dice.choice(names), f"src/part_{dice.randrange(300)}.py"
        text = "".join(
            f"def {dice.choice(names)}(rows): return rows  # {n}\n"
            for n in range(dice.randrange(20, 120))
        )
        tool = ("read_file", {"path": path}) if number % 3 else ("search_files", {"regex": name})
        log.work(*tool, text, cached=sent, digest=text[:200], exact=False)
        sent = next(e.body.tokens for e in reversed(log.events) if e.type == "ModelCalled")
        if number % 200 == 199:
            results = [e.body for e in log.events if e.type == "ToolReturned"][-150:-6]
            log.compact(replaced={body.call_id: "[cleared]" for body in results[:60]})
    log.user("The last.")
    log.ask()
    return log


def measure(steps: int, *, targets: bool) -> None:
    log = session(steps)
    calls = calls_of(log.events)
    messages = sum(event.type in ("UserSaid", "ModelSaid", "ToolReturned") for event in log.events)
    about = f"at {messages:,} messages"

    def report() -> None:
        moment = moment_of(log.events, find_call(calls, None))
        head = log.heads[moment.call.body.head]
        _, exact = rebuild(moment, head, log.wires)
        assert exact.exact
        report_of(moment, head, exact, calls=calls, events=log.events)

    def explain() -> None:
        moment = moment_of(log.events, find_call(calls, None))
        why(log.events, calls, moment, log.heads[moment.call.body.head], "compute_77")

    def breaks() -> None:
        found = breaks_of(log.events, calls, log.heads, log.wires)
        receipts_of("session-1", log.events, calls, found.breaks)

    figure(f"report of the last step, {about}", timed(report), "s", "< 1" if targets else "")
    figure(f"why a text is there, {about}", timed(explain), "s", "< 2" if targets else "")
    figure(f"breaks and receipts, {about}", timed(breaks), "s", "< 2" if targets else "")
    for name in ("none", "batch", "digest", "zone"):
        scenario = Scenario(policy=name)
        took = timed(lambda scenario=scenario: what_if("s", log.events, calls, [scenario]))
        figure(f"what-if {name}, {about}", took, "s", "< 3" if targets else "")


if __name__ == "__main__":
    measure(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000, targets=True)
    if len(sys.argv) <= 1:
        measure(5_000, targets=False)
