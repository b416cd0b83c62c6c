"""Writes docs/cli.md from the command tree; `--check` says whether the file is up to date (exit 1)."""

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from croze.ui.cli.root import cli

TARGET = Path(__file__).parent.parent / "docs" / "cli.md"
HEADER = """\
# Command line

Generated from the program by `scripts/cli_reference.py`: change the help texts, not this file.
"""


def walk(command: click.Command, ctx: click.Context) -> Iterator[tuple[str, str]]:
    """Every command with its help, the parents first."""
    yield ctx.command_path, command.get_help(ctx)
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            inner = command.get_command(ctx, name)
            assert inner is not None
            yield from walk(inner, click.Context(inner, info_name=name, parent=ctx))


def reference() -> str:
    """The whole document."""
    root = click.Context(
        cli,
        info_name="croze",
        terminal_width=96,
        max_content_width=96,
        help_option_names=["-h", "--help"],
    )
    parts = [HEADER]
    for path, text in walk(cli, root):
        lines = "\n".join(line.rstrip() for line in text.splitlines())
        parts.append(f"## {path}\n\n```text\n{lines}\n```\n")
    return "\n".join(parts)


def main(arguments: list[str]) -> int:
    wanted = reference()
    if "--check" in arguments:
        if TARGET.exists() and TARGET.read_text("utf-8") == wanted:
            return 0
        print(f"{TARGET} is out of date: run python scripts/cli_reference.py")
        return 1
    TARGET.write_text(wanted, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
