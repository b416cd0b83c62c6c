"""Python hooks: the functions of installed packages that the configuration names."""

import re
from collections.abc import Sequence
from importlib.metadata import entry_points

from croze.agent.hooks import PluginHook
from croze.tools.hooks import POINTS
from croze.types.errors import ConfigError

PLUGINS = "croze.hooks"
"""The entry point group of Python hooks."""


def load_hook_plugins(names: Sequence[str]) -> list[PluginHook]:
    """The functions of the entry points that the configuration names: `pre_tool_use`, `stop` and so on, of
    a module, an object or a class. Raises ConfigError where one isn't there or can't be loaded."""
    known = {point.name: point for point in entry_points(group=PLUGINS)}
    found: list[PluginHook] = []
    for name in names:
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise ConfigError(
                f"The hook plugin {name} is not installed.",
                hint=f"Installed plugins of the group {PLUGINS}: {listed}.",
                code="hook_plugin_unknown",
                plugin=name,
                listed=listed,
            )
        try:
            loaded = known[name].load()
            plugin = loaded() if isinstance(loaded, type) else loaded
        except Exception as error:
            raise _broken_plugin(name, f"{type(error).__name__}: {error}") from error
        functions = [
            PluginHook(point=point, name=name, function=getattr(plugin, snake))
            for point in POINTS
            if callable(getattr(plugin, snake := _snake(point), None))
        ]
        if not functions:
            raise _broken_plugin(name, f"it has no function such as {_snake(POINTS[0])}")
        found += functions
    return found


def _snake(point: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", point).lower()


def _broken_plugin(name: str, reason: str) -> ConfigError:
    return ConfigError(
        f"The hook plugin {name} can't be loaded: {reason}",
        hint="Repair it, or take it out of the configuration.",
        code="hook_plugin_broken",
        plugin=name,
        reason=reason,
    )
