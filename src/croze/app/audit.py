"""The instruction audit: every file that could tell an agent something, and what became of it.

Each kind has one function here, which reads what a session would read now. A file that isn't used, or
not whole, is among them with the reason.
"""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from croze.app.config import Config
from croze.app.knowledge import finder_for
from croze.knowledge.find import Folder, Found, Kind

Audit = Callable[[Config, Mapping[str, str]], list[Found]]


def audit(config: Config, env: Mapping[str, str], kind: str = "") -> list[Found]:
    """The files of a kind, or of all kinds, in the order of `AUDITS`; within a kind the higher first."""
    wanted = [kind] if kind else list(AUDITS)
    return [found for name in wanted for found in AUDITS[name](config, env)]


def as_values(found: Found) -> dict[str, Any]:
    """A finding for programs."""
    values = msgspec.structs.asdict(found)
    del values["mark"]
    return values


def law(config: Config, env: Mapping[str, str]) -> list[Found]:
    from croze.context.law import LAW_FILES

    kind = Kind("law", (Folder("project", ".", only=LAW_FILES),), most=64 << 20)
    return [
        msgspec.structs.replace(found, state="broken", reason="it is empty")
        if found.acts and not found.tokens
        else found
        for found in (each.found for each in finder_for(config, env).load(kind))
    ]


def rules(config: Config, env: Mapping[str, str]) -> list[Found]:
    """Rules and the instruction files of other agents, with when they hold; in all folders of the project."""
    from croze.knowledge.instructions import instructed
    from croze.knowledge.rules import RuleFiles, reach
    from croze.workspace.files import Files

    root = Path(os.path.realpath(config.project.root))
    found = RuleFiles(finder_for(config, env)).read(instructed(Files(root, kind="project")))
    return [
        msgspec.structs.replace(
            rule.found, reason="; ".join(filter(None, (rule.found.reason, reach(rule))))
        )
        for rule in found
    ]


def agents(config: Config, env: Mapping[str, str]) -> list[Found]:
    """Their tools are held against those that there are, their models against the catalogue."""
    from croze.app.agents import load_agents, models_of
    from croze.app.mcp import load_mcp, open_servers, outside_of
    from croze.app.models import environment_with_keys, open_catalog
    from croze.tools.registry import builtin
    from croze.types.agent import AgentSpec

    registry = builtin()
    registry.load_plugins(config.settings.plugins.tools)
    registry.outside = outside_of(open_servers(config, env, load_mcp(config)))
    keyed = environment_with_keys(config, env)
    catalog = open_catalog(config, keyed)
    told = []
    for file in load_agents(config, env, registry).files:
        spec = AgentSpec(name=file.name, model=file.model)
        problem = models_of(spec, catalog, keyed)[1] if file.model else None
        reason = f"the model {file.model} can't be used here" if problem else ""
        reason = "; ".join(filter(None, (file.found.reason, reason)))
        told.append(msgspec.structs.replace(file.found, reason=reason))
    return told


def hooks(config: Config, env: Mapping[str, str]) -> list[Found]:
    """Files of hooks, and the project's files that their commands name and that nobody trusts."""
    from croze.app.hooks_config import CLAUDE_FILE, PROJECT_FILE, UNTRUSTED, USER_FILE, load_hooks

    folders = [_file("project", PROJECT_FILE), _file("config", USER_FILE)]
    if config.settings.plugins.claude_hooks:
        folders += [_file("project", CLAUDE_FILE), _file("home", CLAUDE_FILE)]
    kind = Kind("hooks", tuple(folders), most=1_000_000)
    finder = finder_for(config, env)
    told = []  # all of them count together: hooks have no names that one could override
    for each in finder.find(kind):
        if each.source != "repos":
            found = finder.read(each, kind.most).found
            told.append(msgspec.structs.replace(found, name=Path(found.path).name))
    known = {str(config.project.root / found.path) for found in told}
    for notice in load_hooks(config, env).notices:
        path = str(notice.params.get("path", ""))
        if notice.code == UNTRUSTED and path not in known:
            own = Path(path).relative_to(config.project.root).as_posix()
            told.append(
                Found(
                    kind="hooks",
                    name=Path(path).name,
                    path=own,
                    source="project",
                    state="untrusted",
                    reason="a hook names it, and the user doesn't trust this content of it",
                    size=Path(path).stat().st_size,
                )
            )
    return told


def _file(base: Any, path: str) -> Folder:
    where = Path(path)
    return Folder(base, where.parent.as_posix(), only=(where.name,))


def tools(config: Config, env: Mapping[str, str]) -> list[Found]:
    """External tools; none is run for it."""
    from croze.app.external_tools import external_tools
    from croze.context.tools_facts import fitting
    from croze.text.tokens import estimate

    found = external_tools(config, env, None).look()
    shown, left_out = fitting([each for each in found if each.usable], sys.maxsize)
    told = []
    for each in found:
        state, reason = each.found.state, each.problem or each.found.reason or each.help.problem
        if each.problem:
            state = "broken"
        elif each in left_out:
            state, reason = "cut", "its help is left out for want of room"
        elif each.usable and not each.help.text and not reason:
            reason = "its help is not known yet"
        tokens = estimate(shown.get(each.found.path, ""))
        told.append(msgspec.structs.replace(each.found, state=state, reason=reason, tokens=tokens))
    return told


def skills(config: Config, env: Mapping[str, str]) -> list[Found]:
    """Skills, with what it costs to tell that they are there."""
    from croze.app.external_tools import skills_of

    return [skill.found for skill in skills_of(config, env).look()]


def libraries(config: Config, env: Mapping[str, str]) -> list[Found]:
    """The documents of the libraries that the user has added for the project."""
    from croze.app.libraries import audited

    return audited(config, env)


def modules(config: Config, env: Mapping[str, str]) -> list[Found]:
    """Descriptions of modules: an agent is told of each when it first reads a file in its folder."""
    from croze.knowledge.modules import MOST_BYTES, NAME
    from croze.workspace.files import Files
    from croze.workspace.listing import files_below

    root = Path(os.path.realpath(config.project.root))
    finder = finder_for(config, env)
    told = []
    for path in files_below(Files(root, kind="project"), "."):
        folder, _, name = path.rpartition("/")
        if name == NAME:
            where = (Folder("project", folder or ".", only=(NAME,)),)
            kind = Kind("modules", where, acts=False, most=MOST_BYTES)
            for loaded in finder.load(kind):
                told.append(msgspec.structs.replace(loaded.found, name=folder or "."))
    return told


AUDITS: dict[str, Audit] = {
    "law": law, "rules": rules, "agents": agents, "tools": tools, "skills": skills, "libraries": libraries,
    "modules": modules, "hooks": hooks,
}  # fmt: skip
"""The kinds in the order in which they are shown."""
