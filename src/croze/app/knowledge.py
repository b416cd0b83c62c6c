"""What the project and the user have laid down for agents: the finder as it is wired here."""

from collections.abc import Mapping
from pathlib import Path

from croze.app.config import Config
from croze.app.hooks_config import not_trusted
from croze.app.options import Finding
from croze.app.trust import Trust
from croze.knowledge.find import Finder, Found, Kind, Places, Trusts
from croze.knowledge.instructions import LAW, ROOT
from croze.knowledge.kinds import CURSOR, KINDS, RULES, SKILLS, TOOLS
from croze.types.errors import ConfigError

INSTRUCTIONS = (LAW, RULES, CURSOR, ROOT)
"""The kinds that are told as material where the user doesn't trust them."""


def finder_for(config: Config, env: Mapping[str, str]) -> Finder:
    """The finder of a project's and its user's files."""
    return Finder(places_of(config, env), trusts(config))


def places_of(config: Config, env: Mapping[str, str]) -> Places:
    home = Path(env.get("HOME") or Path.home())
    return Places(config.project.root, home, config.paths.config)


def untrusted(config: Config, env: Mapping[str, str]) -> list[Finding]:
    """What the user is to be told at the start: the project's folders with files that would act if they
    were trusted, and its files that would instruct."""
    finder, trust = finder_for(config, env), config.trust
    told: dict[Path, bool] = {}
    for kind in (*KINDS, *INSTRUCTIONS):
        material = kind in INSTRUCTIONS
        for found in finder.find(kind, project_only=True):
            if found.acts and _inert(finder, trust, kind, found):
                where = found.path if found.folder in (".", ".github") else found.folder
                told.setdefault(config.project.root / where, material)
    return [not_trusted(path, trust.listed, material=told[path]) for path in told]


def _inert(finder: Finder, trust: Trust, kind: Kind, found: Found) -> bool:
    """Whether it would count if it were trusted. Of a stranger's project nothing is read for it: a large
    folder costs nothing."""
    if trust.names(found.path):
        return not finder.fetch(found, kind.most)[0].acts
    if kind.programs or not (trust.once or trust.kept.files):
        return True
    loaded = finder.read(found, kind.most)
    empty = kind in INSTRUCTIONS and not loaded.text.strip()
    return loaded.found.state == "untrusted" and not empty


def libraries_file(config: Config) -> Path:
    """The list of the libraries whose documentation the user has added for the project. It is among the
    user's own data: a project can't add any."""
    return config.paths.data / config.project.folder_name / "libraries.json"


def trusts(config: Config) -> Trusts:
    """Whether the user trusts a file of the project with these bytes. Nothing is trusted where the list
    can't be read."""
    root, trust = config.project.root, config.trust

    def trusted(path: Path, data: bytes) -> bool:
        try:
            return trust.holds(path.relative_to(root).as_posix(), data)
        except ConfigError:
            return False

    return trusted


def lent(config: Config, env: Mapping[str, str]) -> tuple[Path, ...]:
    """The user's folders that commands may read although they lie where croze keeps its settings."""
    places = places_of(config, env)
    folders = (*TOOLS.folders, *SKILLS.folders)
    return tuple(places.base(each) / each.path for each in folders if each.base != "project")
