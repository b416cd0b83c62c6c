"""Reading a skill when it is needed: its instructions, and its files."""

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from croze.text.display import one_line
from croze.tools.base import Tool, ToolContext, ToolSpec
from croze.tools.command_rules import NEVER_ALWAYS
from croze.tools.rule_syntax import Rule, parse_rule
from croze.types.errors import ConfigError
from croze.types.parts import ToolCall
from croze.types.tool import Access, ToolExample, ToolResult, View

if TYPE_CHECKING:
    from croze.knowledge.find import Found
    from croze.knowledge.skills import Skill, Skills


class LoadSkill(Tool, frozen=True):
    """Read a skill's instructions before you begin the work that it is for, or with file one of the files
    that it names. Its scripts are run with execute_command."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="load_skill",
        summary="read a skill's instructions or one of its files",
        access=Access(read=True),
        examples=(ToolExample("Read a skill", {"name": "pdf-forms"}),),
        aliases={"skill": "name", "skill_name": "name", "command": "name", "path": "file"},
    )

    name: Annotated[str, Meta(min_length=1)]
    file: Annotated[str, Meta(description="one of its files, as the skill names it")] | None = None

    async def run(self, ctx: ToolContext) -> ToolResult:
        skills = ctx.skills
        skill = None if skills is None else skills.get(self.name.strip())
        if skills is None or skill is None:
            return _unknown(self.name, skills)
        if not skill.found.acts:
            return _unusable(skill.found)
        if self.file is not None and self.file.strip() not in ("", "SKILL.md"):
            found, text = skills.file(skill, self.file.strip())
            if not found.acts:
                return _no_file(self.file, found, skills.files(skill))
            return _result(skill, found, text, f"{skill.name}/{found.name}")
        found, text = skills.body(skill)
        if not found.acts:
            return _unusable(found)
        parts = [text, _where(ctx, skill, skills.files(skill))]
        parts.append(await _freely(ctx, skill))
        return _result(skill, found, "\n\n".join(filter(None, parts)), skill.name)

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        return f"{result.message} Load it again where its text is needed." if result.ok else ""


def _result(skill: "Skill", found: "Found", text: str, name: str) -> ToolResult:
    return ToolResult(
        ok=True,
        message=f"{name}, from {one_line(found.path, 300)}.",
        text=text,
        view=View(title=f"Skill {name}", body=text),
        data={
            "skill": skill.name,
            "path": found.path,
            "sha256": found.sha256,
            "license": skill.card.license,
        },
    )


def _where(ctx: ToolContext, skill: "Skill", files: Sequence[str]) -> str:
    """Where the skill's files lie, as commands see it."""
    from croze.knowledge.skills import MOST_FILES  # only where there are skills

    lines = []
    if skill.card.compatibility:
        lines.append(f"It needs: {skill.card.compatibility}")
    root = ctx.workspace.root
    inside = skill.folder.is_relative_to(root)
    folder = skill.folder.relative_to(root).as_posix() if inside else str(skill.folder)
    if files:
        lines.append(
            f"The skill's folder is {shlex.quote(folder)}: what it names lies there. load_skill with file "
            "reads a file of it; execute_command runs a script, in the workspace's root."
        )
        lines += [f"- {one_line(file, 300)}" for file in files]
        if len(files) == MOST_FILES:
            lines.append("- … and perhaps more: find_files or ls tells")
    if not lines:
        return ""
    return "\n".join(("---", *lines))


async def _freely(ctx: ToolContext, skill: "Skill") -> str:
    """What becomes of the tools that the skill would like to use without a question."""
    if not skill.card.allowed_tools:
        return ""
    rules, wide = rules_of(skill.card.allowed_tools)
    told = []
    if rules:
        shown = ", ".join(one_line(rule, 200) for rule in rules)
        given = await ctx.allow(
            rules,
            f"The skill {skill.name} would like to use these without a question, in this session: {shown}",
        )
        told.append(
            f"Without a question in this session: {shown}."
            if given
            else f"The skill asks for {shown} without a question; the user's rules hold as before."
        )
    if wide:
        shown = ", ".join(one_line(rule, 200) for rule in wide)
        told.append(f"It also asks for {shown}: that is too wide, so each use is asked about.")
    return " ".join(told)


def rules_of(wanted: Sequence[str]) -> tuple[list[str], list[str]]:
    """The rules that a skill's list can be offered as, and those that it can't: what is free anyway
    is in neither."""
    offered: list[str] = []
    wide: list[str] = []
    for text in wanted:
        try:
            rule = parse_rule(text, "allow")
        except ConfigError:
            wide.append(text)
            continue
        if rule.tools and all(tool in _FREE for tool in rule.tools):
            continue
        (offered if _is_narrow(rule) else wide).append(text)
    return offered, wide


_FREE = frozenset(
    {"read_file", "search_files", "find_files", "list_files", "list_code_definition_names", "repo_map"}
    | {"todo_read", "todo_write", "load_skill", "attempt_completion", "ask_followup_question"}
)  # fmt: skip
"""Tools that are not asked about."""


def _is_narrow(rule: Rule) -> bool:
    """Whether a rule says what exactly it is for: some commands that run nothing else, some paths, one
    address."""
    words = rule.pattern.removeprefix("=").replace(":*", " ").replace("*", " ").split()
    if not words or any(tool.endswith("*") for tool in rule.tools):
        return False
    program = words[0].rpartition("/")[2]
    return (
        rule.tools != ("execute_command",)
        or not {
            program,
            program.rstrip("0123456789."),
        }
        & NEVER_ALWAYS
    )


def _unknown(name: str, skills: "Skills | None") -> ToolResult:
    there = [] if skills is None else [each.name for each in skills.look() if each.found.acts]
    known = f"There are: {', '.join(there)[:2_000]}." if there else "There are none."
    return ToolResult(
        ok=False,
        message=f"There is no skill named {one_line(name, 100)!r}. {known}",
        code="unknown_skill",
    )


def _unusable(found: "Found") -> ToolResult:
    hint = " The user can change that: croze trust." if found.state == "untrusted" else ""
    return ToolResult(
        ok=False,
        message=f"The skill {found.name} can't be used: {found.reason}.{hint}",
        data={"path": found.path},
        code="untrusted" if found.state == "untrusted" else "unusable_skill",
    )


def _no_file(name: str, found: "Found", files: Sequence[str]) -> ToolResult:
    listed = "\n".join(f"- {one_line(file, 300)}" for file in files)
    return ToolResult(
        ok=False,
        message=f"{one_line(name, 200)} can't be read: {found.reason}.",
        text=f"Files of the skill:\n{listed}" if listed else "It has no other files.",
        code="untrusted" if found.state == "untrusted" else "no_such_file",
    )
