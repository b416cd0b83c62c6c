"""Answers that must be JSON of a given shape: the demand, the check, the second chance."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from croze.app.schema import SchemaProblem, check_schema, violation
from croze.types.errors import UsageError
from croze.ui.i18n import _


@dataclass(frozen=True, slots=True)
class Schema:
    """A JSON Schema from a file, already checked itself."""

    document: dict[str, Any]

    def demand(self, task: str) -> str:
        """The task with the form that its answer must have (English: it goes to the model)."""
        return (
            f"{task}\n\nYour final answer must be one JSON value that satisfies this JSON Schema, and "
            f"nothing else: no prose, no code fence.\n\n{json.dumps(self.document)}"
        )

    def again(self, problem: str) -> str:
        """What the model is told when its answer doesn't fit."""
        return (
            f"Your answer does not satisfy the JSON Schema: {problem}\nGive the final answer again, as "
            "one JSON value that satisfies the schema, and nothing else."
        )

    def parse(self, answer: str) -> Any:
        """The answer's JSON value; a fence round it is taken off. Raises `ValueError`."""
        text = answer.strip()
        if text.startswith("```") and text.endswith("```") and "\n" in text:
            text = text.partition("\n")[2][: -len("```")]
        return json.loads(text, parse_constant=_no_json)

    def check(self, answer: str) -> str:
        """What is wrong with an answer; empty when it fits."""
        try:
            value = self.parse(answer)
        except (ValueError, RecursionError) as error:
            return f"it is not JSON: {error}"
        return violation(value, self.document) or ""


def _no_json(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def read_schema(path: str) -> Schema:
    """The schema in a file; `UsageError` where it can't be read or uses what can't be checked."""
    try:
        document = json.loads(Path(path).read_text("utf-8"))
        if not isinstance(document, dict):
            raise ValueError("not a JSON object")
        check_schema(document)
    except (OSError, ValueError, SchemaProblem, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(
            _("the schema {path} can't be used: {reason}", path=path, reason=reason),
            hint=_("give a file with a JSON Schema object"),
            code="schema_unusable",
        ) from error
    return Schema(document)
