"""The messages that croze shows: found in the source, held against the catalogues.

`python scripts/messages.py` lists what each catalogue lacks, what it has too much, and where a
translation's `{places}` differ; exit 1 if there is anything. `--template LANG` prints the missing
entries ready to be filled in.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from croze.ui.i18n import LOCALE, catalogue

SOURCE = Path(__file__).parent.parent / "src" / "croze" / "ui"
CALLS = {"_", "mark"}


def messages(folder: Path = SOURCE) -> dict[str, str]:
    """Every literal given to `_` or `mark`, with the place of its first use."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*.py")):
        if "demo/project" in path.as_posix():
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in CALLS
                and node.args
            ):
                continue
            place = f"{path.relative_to(folder)}:{node.lineno}"
            match node.args[0]:
                case ast.Constant(value=str(text)) if text:
                    found.setdefault(text, place)
                case ast.JoinedStr():
                    raise SystemExit(f"{place}: an f-string can't be translated")
                case _computed:
                    pass
    return found


def places(text: str) -> set[str]:
    """The names in a message's `{places}`."""
    return set(re.findall(r"{(\w+)[^}]*}", text))


def problems(language: str) -> Iterator[str]:
    """What is wrong with a language's catalogue."""
    have = catalogue(language)
    wanted = messages()
    for text, place in wanted.items():
        translated = have.get(("", text))
        if translated is None:
            yield f"{place}: no {language} for {text!r}"
        elif places(translated) != places(text):
            yield f"{place}: {language} has other places: {translated!r}"
    for context, text in have:
        if not context and text not in wanted:
            yield f"{language}: nothing shows {text!r} any more"


def quoted(text: str) -> str:
    """A text in the form of a `.po` file."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--template"]:
        have = catalogue(arguments[1])
        for text, place in messages().items():
            if ("", text) not in have:
                print(f'#: {place}\nmsgid {quoted(text)}\nmsgstr ""\n')
        return 0
    found = [p for path in sorted(LOCALE.iterdir()) for p in problems(path.name)]
    print("\n".join(found) or "every message has its translations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
