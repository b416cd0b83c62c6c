"""Making an external tool: a small program whose help works, put in its place and trusted."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from croze.app.config import Config
from croze.knowledge.external_tools import RUNNERS
from croze.knowledge.kinds import TOOLS
from croze.types.errors import UsageError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_HELP = ("Usage: {name} TEXT...", "Says TEXT.")

_SCRIPTS: Mapping[str, str] = {
    "py": '''#!/usr/bin/env python3
"""{does}"""

import sys

HELP = """\\
{usage}

{does}
"""


def main(words):
    if not words or words[0] in ("help", "-h", "--help"):
        print(HELP, end="")
        return 0
    print(*words)
    return 0


sys.exit(main(sys.argv[1:]))
''',
    "sh": """#!/bin/sh
# {usage}
#
# {does}

case "${{1:-help}}" in
help | -h | --help)
  printf '%s\\n' '{usage}' '' '{does}'
  exit 0
  ;;
esac
printf '%s\\n' "$*"
""",
    "js": """#!/usr/bin/env node
// {usage}
//
// {does}

const words = process.argv.slice(2);
if (words.length === 0 || ["help", "-h", "--help"].includes(words[0])) {{
  console.log("{usage}\\n\\n{does}");
  process.exit(0);
}}
console.log(words.join(" "));
""",
    "rb": """#!/usr/bin/env ruby
# {usage}
#
# {does}

if ARGV.empty? || %w[help -h --help].include?(ARGV[0])
  puts "{usage}", "", "{does}"
  exit
end
puts ARGV.join(" ")
""",
    "pl": """#!/usr/bin/env perl
# {usage}
#
# {does}
use strict;
use warnings;

if (!@ARGV || $ARGV[0] =~ /^(help|-h|--help)$/) {{
    print "{usage}\\n\\n{does}\\n";
    exit 0;
}}
print "@ARGV\\n";
""",
    "php": """#!/usr/bin/env php
<?php
# {usage}
#
# {does}

$words = array_slice($argv, 1);
if (!$words || in_array($words[0], ["help", "-h", "--help"])) {{
    echo "{usage}\\n\\n{does}\\n";
    exit(0);
}}
echo implode(" ", $words), "\\n";
""",
    "go": """// {usage}
//
// {does}
package main

import (
	"fmt"
	"os"
	"strings"
)

func main() {{
	words := os.Args[1:]
	if len(words) == 0 || words[0] == "help" || words[0] == "-h" || words[0] == "--help" {{
		fmt.Println("{usage}\\n\\n{does}")
		return
	}}
	fmt.Println(strings.Join(words, " "))
}}
""",
    "rs": """// {usage}
//
// {does}
use std::env;

fn main() {{
    let words: Vec<String> = env::args().skip(1).collect();
    match words.first().map(String::as_str) {{
        None | Some("help") | Some("-h") | Some("--help") => println!("{usage}\\n\\n{does}"),
        _ => println!("{{}}", words.join(" ")),
    }}
}}
""",
}
LANGUAGES = tuple(_SCRIPTS)


def new_tool(
    config: Config,
    name: str,
    language: str = "py",
    *,
    source: Path | None = None,
    user: bool = False,
) -> Path:
    """Write a tool into the project's folder, or the user's, and trust it as it then is; `source` is a
    finished one. Raises UsageError where there is one of this name, or it can't be written."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name[:80]!r} is no name for a tool.",
            hint="Letters, digits, - and _, at most 64; the suffix is added.",
            code="tool_name",
            name=name[:80],
        )
    if source is None:
        usage, does = (line.format(name=name) for line in _HELP)
        data, suffix = _SCRIPTS[language].format(usage=usage, does=does).encode(), f".{language}"
    else:
        data, suffix = _finished(source)
    folder = config.paths.config / "tools" if user else config.project.root / ".croze" / "tools"
    path = folder / f"{name}{suffix}"
    _write(path, data, config, user=user)
    if not user:
        config.trust.add({path.relative_to(config.project.root).as_posix(): data})
    return path


def _finished(source: Path) -> tuple[bytes, str]:
    suffix = source.suffix.lower()
    if suffix and suffix not in RUNNERS:
        raise UsageError(
            f"{source} can't be a tool: nothing here runs a {suffix} file.",
            hint=f"A program without a suffix, or {' '.join(RUNNERS)}.",
            code="tool_suffix",
            path=str(source),
            suffix=suffix,
            suffixes=" ".join(RUNNERS),
        )
    try:
        with source.open("rb") as file:
            data = file.read(TOOLS.most + 1)
    except OSError as error:
        raise _failed(source, os.strerror(error.errno or 0)) from error
    if len(data) > TOOLS.most:
        raise _failed(source, f"more than {TOOLS.most:,} bytes")
    return data, suffix


def _write(path: Path, data: bytes, config: Config, *, user: bool) -> None:
    """Make the file; never over another, and never outside of the project by a link."""
    taken = [each for each in _beside(path) if each.stem == path.stem]
    if taken:
        raise UsageError(
            f"There is already a tool named {path.stem}: {taken[0]}.",
            hint="Give the new one another name, or remove that file first.",
            code="tool_file_exists",
            tool=path.stem,
            path=str(taken[0]),
        )
    try:
        path.parent.mkdir(mode=0o700 if user else 0o755, parents=True, exist_ok=True)
        real = Path(os.path.realpath(path.parent))
        if not user and not real.is_relative_to(config.project.root):
            raise _failed(path, "its folder is a link that leads out of the project")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags, 0o755), "wb") as file:
            file.write(data)
    except OSError as error:
        raise _failed(path, os.strerror(error.errno or 0)) from error


def _beside(path: Path) -> list[Path]:
    try:
        return [each for each in path.parent.iterdir() if not each.is_dir()]
    except OSError:
        return []


def _failed(path: Path, reason: str) -> UsageError:
    return UsageError(
        f"{path}: {reason}.",
        hint="Nothing was written.",
        code="tool_file",
        path=str(path),
        reason=reason,
    )
