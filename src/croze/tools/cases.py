"""Short guides on combining tools, each for one case; `describe_tools` gives them by name."""

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct


class Case(Struct, frozen=True):
    """A guide. `tools` are those that it needs."""

    tools: tuple[str, ...]
    text: str


CASES: Mapping[str, Case] = MappingProxyType(
    {
        "case:explore": Case(
            ("repo_map", "list_code_definition_names", "search_files", "read_file"),
            """To find the code that matters in a repository that you don't know:
1. repo_map shows what most files rest on. Once you know the area, map its folder, or put the files you \
work on into focus.
2. list_code_definition_names on a file that matters gives its definitions with their lines.
3. read_file with those lines. Whole files only where they are short.
4. search_files for a name with word boundaries (\\bname\\b) shows who uses it; its tests show how.
For a word that you know already, begin with 4; for a file's name, with find_files.""",
        ),
        "case:rename": Case(
            ("search_files", "replace_in_file", "execute_command"),
            """To change something everywhere:
1. search_files with \\bold_name\\b. Where it says that there are more than it shows, go folder by folder \
with path or include until nothing is left out.
2. replace_in_file: the definition first, then the users; one file a call, all its blocks in it.
3. Search again: 0 matches, but for those that must stay (changelogs, messages, stored data).
4. execute_command: the checks, and the tests that cover it.""",
        ),
        "case:long-output": Case(
            ("execute_command", "read_result", "search_files"),
            """Where a result is larger than it may be:
1. Let execute_command say less to begin with: a test runner's quiet mode, one test, a path, a limit.
2. A result that was cut names its id; read_result with it and a start line goes on where it stopped.
3. Output that you will search more than once: write it to a file outside of the sources, then \
search_files on that file.""",
        ),
        "case:many-edits": Case(
            ("read_file", "replace_in_file", "edit_file", "write_to_file"),
            """Which edit tool when:
- A few places in a file: replace_in_file, all blocks in one call; each SEARCH as short as it is unique.
- Many places in one file, most of it unchanged: edit_file with a sketch.
- More than half of a file, or a new one: write_to_file with the whole content.
After an error read_file before the next try: what you remember of it is not what is there.""",
        ),
        "case:external-tool": Case(
            ("run_named_subagents", "execute_command"),
            """To make a command-line tool that the user keeps, for work that comes again:
1. One job: arguments in, text out, exit code 0 where it succeeded.
2. run_named_subagents: let general build it, with max_time (1800 is plenty), in a folder of the workspace \
that is no part of the product; say in the task all that follows.
3. Prefer Go: the finished program (go build -o NAME) needs nothing else. Else a script in .py, .sh, .js, \
.rb, .pl or .php with #! and chmod +x.
4. It must answer help, -h and --help with what it does, its options and an example: exit code 0, within \
5 seconds, nothing changed. A script may instead begin with comments from a line with "Usage:" on.
5. execute_command: try its help and one real call.
6. Only the user can install it. Ask for: croze tools new NAME --from PATH (with --user: for all projects). \
From then on it is told to you with its help.""",
        ),
    }
)


def told(name: str, unknown: list[str]) -> str:
    """A guide as it is told to an agent that does not have the `unknown` of its tools."""
    missing = f"\n(You don't have {', '.join(unknown)}: leave those steps out.)" if unknown else ""
    return f"## {name}\n{CASES[name].text}{missing}"
