"""After each step: is the turn done, does the model need a word, or does it simply go on?"""

from typing import Literal

from msgspec import Struct

from croze.agent.exchange import Said
from croze.tools.run import Outcome
from croze.types.agent import AgentSpec

MAX_REMINDERS = 3
MAX_NUDGES = 3

FENCED = (
    "Your reply held tool calls only inside a code fence or in your thinking, so none was run. "
    "Write a call outside of any fence, its tag at the start of a line."
)
EMPTY = "Your reply was empty. Go on with the task, or say that it is done."
CUT = (
    "Your reply was cut by its length limit. Go on in smaller pieces: write a long file in parts "
    "with write_to_file and mode append."
)
WROTE_RESULT = (
    "Your reply wrote a tool result itself; it was ended there. Results come from the tools only."
)
DEMAND = "If the task is done, report it with attempt_completion; else go on with a tool call."


class Verdict(Struct, frozen=True):
    """`go` on (after telling the model `text`, where there is any), `done`, or `failed`."""

    kind: Literal["go", "done", "failed"]
    text: str = ""
    code: str = ""


class Patience(Struct):
    """Reminders of this turn, and corrections since the last call that was run."""

    reminders: int = 0
    nudges: int = 0


def judge(said: Said, outcome: Outcome, spec: AgentSpec, patience: Patience) -> Verdict:
    """Decide what follows a step. A reply without a call ends the turn, unless it was empty, cut, or its
    calls stood where none count."""
    if outcome.ended is not None:
        return Verdict("done", outcome.ended.text)
    if outcome.results:
        patience.nudges = 0
        return Verdict("go")
    text = said.text.strip()
    problem = ""
    if said.reply.problem == "fenced":
        problem, word = "fenced", FENCED
    elif said.reply.problem == "wrote_result":
        problem, word = "wrote_result", WROTE_RESULT
    elif said.finish in (None, "length"):
        problem, word = "cut", CUT
    elif not text:
        problem, word = "empty", EMPTY
    if problem:
        patience.nudges += 1
        most = 1 if problem == "empty" else MAX_NUDGES
        if patience.nudges > most:
            return Verdict("failed", _FAILED[problem], problem)
        return Verdict("go", word, problem)
    if said.finish == "content_filter":
        return Verdict(
            "failed", "The provider's content filter stopped the reply.", "content_filter"
        )
    if spec.demand_completion:
        patience.reminders += 1
        if patience.reminders <= MAX_REMINDERS:
            return Verdict("go", DEMAND, "demand_completion")
    return Verdict("done", text)


_FAILED = {
    "fenced": "The model kept writing its tool calls inside code fences.",
    "wrote_result": "The model kept writing tool results itself.",
    "cut": "The model's replies kept being cut by their length limit.",
    "empty": "The model returned an empty reply twice.",
}
