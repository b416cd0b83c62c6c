"""The kinds of knowledge as data: where each lies, and what counts there."""

from croze.knowledge.find import Folder, Kind


def _user(name: str, *others: str) -> tuple[Folder, ...]:
    """Croze's own user folder of a kind, and those of other agents below the user's home."""
    return (Folder("config", name), *(Folder("home", other) for other in others))


def _project(*paths: str) -> tuple[Folder, ...]:
    return tuple(Folder("project", path) for path in paths)


AGENTS = Kind(
    "agents",
    (
        *_project(
            ".croze/agents", ".autocoderagents", ".auto-coder/.autocoderagents", ".claude/agents"
        ),
        *_user("agents", ".auto-coder/.autocoderagents", ".claude/agents"),
    ),
)
RULES = Kind(
    "rules",
    (
        *_project(
            ".croze/rules",
            ".autocoderrules",
            ".auto-coder/.autocoderrules",
            ".auto-coder/autocoderrules",
        ),
        *_user("rules", ".auto-coder/autocoderrules"),
    ),
    strategy="first-of-project",
)
"""Not among the KINDS: those that nobody trusts are told as material rather than left out."""
CURSOR = Kind("rules", _project(".cursor/rules"), suffixes=(".mdc",))
TOOLS = Kind(
    "tools",
    (
        *_project(".croze/tools", ".autocodertools", ".auto-coder/.autocodertools"),
        *_user("tools", ".auto-coder/.autocodertools"),
    ),
    suffixes=("", ".py", ".sh", ".js", ".rb", ".pl", ".php", ".go", ".rs"),
    most=32 << 20,
    programs=True,
)
SKILLS = Kind(
    "skills",
    (
        *_project(".croze/skills", ".agents/skills", ".claude/skills"),
        *_user("skills", ".agents/skills", ".claude/skills"),
    ),
    inside="SKILL.md",
)
KINDS = (AGENTS, TOOLS, SKILLS)
"""All kinds that lie in folders."""
