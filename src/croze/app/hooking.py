"""Gives a live session its hooks."""

from functools import partial
from typing import TYPE_CHECKING

from croze.app.config import Config
from croze.app.named import changed_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from croze.agent.live import Live
    from croze.tools.hooks import Hook


def attach_hooks(live: "Live", config: Config, hooks: "Sequence[Hook]") -> None:
    """Hang the configured hooks and plugins at the session's points; nothing where there are none.
    Raises ConfigError for a plugin that can't be loaded."""
    names = config.settings.plugins.hooks
    if not hooks and not names:
        return
    from croze.agent.hooks import HookRunner
    from croze.app.hook_plugins import load_hook_plugins
    from croze.app.transcript_file import TranscriptFile
    from croze.tools.run import run_calls

    root = config.project.root
    transcript = TranscriptFile(config.store_folder, live.log.session, str(root))
    transcript.begin(live.log.events)
    live.bus.subscribe(transcript.watch)
    runner = HookRunner(
        live=live,
        hooks=tuple(hooks),
        plugins=tuple(load_hook_plugins(names)) if names else (),
        transcript=transcript.path,
        changed=lambda hook: changed_file(hook.pinned, root),
    )
    live.hooks = runner
    live.run_calls = partial(run_calls, hooks=runner)
