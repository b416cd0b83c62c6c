"""A project and a user with external tools on disk."""

import os
from collections.abc import Mapping
from pathlib import Path

from croze.knowledge.external_tools import ExternalTool, ExternalTools
from croze.knowledge.find import Finder, Places
from croze.workspace.sandbox import Confinement
from croze.workspace.wrapper import Entrance


class Bench:
    """Places on disk, and the tools in them. `trusted`: whether the project's files may act."""

    def __init__(self, root: Path, *, trusted: bool = True, env: Mapping[str, str] = {}) -> None:
        self.project, self.home = root / "project", root / "home"
        self.project.mkdir(exist_ok=True)
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home), **env}
        self.config = self.home / ".config/croze"
        self.cache = root / "cache"
        self.trusted = trusted
        self.asked = 0
        self.off = False
        self.confinement = Confinement(
            root=self.project,
            env=self.env,
            cache=root / "proofs",
            own=(self.config,),
            lent=(self.config / "tools",),
        )

    def put(self, path: str, text: str | bytes, *, mode: int = 0o755) -> Path:
        """A file below the project, or with `~/` below the home."""
        file = self.home / path[2:] if path.startswith("~/") else self.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        file.chmod(mode)
        return file

    def tools(self) -> ExternalTools:
        finder = Finder(
            Places(self.project, self.home, self.config), lambda _path, _data: self.trusted
        )
        return ExternalTools(
            finder,
            self.cache,
            self.env,
            self._sandbox,
            lambda _path: "hash" if self.trusted else "",
        )

    async def all(self) -> dict[str, ExternalTool]:
        """The tools by file name, after they were asked for their help."""
        tools = self.tools()
        await tools.ask(tools.unasked(tools.look()))
        return {tool.file: tool for tool in tools.look() if tool.found.state != "shadowed"}

    async def one(self, name: str, text: str | bytes, *, mode: int = 0o755) -> ExternalTool:
        self.put(f".croze/tools/{name}", text, mode=mode)
        return (await self.all())[name]

    async def _sandbox(self) -> tuple[bool, Entrance | None]:
        self.asked += 1
        if self.off:
            return True, None
        wrapper = await self.confinement.for_reading(offline=True)
        return wrapper is not None, wrapper
