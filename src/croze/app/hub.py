"""The hub of a run as its sessions reach it. It is made when somebody speaks or a sub-agent is opened:
most sessions never have one."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from croze.agent.live import Live
from croze.tools.registry import Registry
from croze.types.team import HUB, ChildOpened, Roster

if TYPE_CHECKING:
    from croze.agent.children import Children
    from croze.teams.hub import Hub, Voice


@dataclass(slots=True)
class RunHub:
    """The hub of the run whose own session is `root`; `first` gives the agents that it begins with."""

    root: Live
    children: "Children"
    first: Callable[[], Roster]
    _hub: "Hub | None" = None
    _nodes: dict[str, str] = field(default_factory=dict)
    _reach: dict[str, Registry] = field(default_factory=dict)

    @property
    def hub(self) -> "Hub":
        if self._hub is None:
            from croze.teams.hub import Hub

            self._hub = Hub(
                self.children,
                self.first(),
                self.root.append,
                events=self.root.log.events,
                source=self.root.source,
            )
        return self._hub

    def roster(self) -> Roster:
        """Whom there is to call now."""
        return self.first() if self._hub is None else self._hub.roster

    def voice(self) -> "Voice":
        """What the run's own agent speaks with."""
        return self.hub.voice(self.root.spec.name)

    def reach(self, opened: ChildOpened, caller: Live) -> Registry:
        """The tools of which a sub-agent may have some: those of whom it works for. One that is spoken to
        has no more than the speaker, and none where the speaker is kept apart from the run's workspace."""
        if opened.label != HUB:
            return caller.registry
        return self._reach.get(self.hub.asker.get(opened.agent, ""), caller.registry)

    def join(self, opened: ChildOpened, caller: Live, live: Live) -> Callable[[], "Voice"]:
        """Take in `live`, a sub-agent of `caller`; gives what it speaks with."""
        voice = self.hub.join(opened, self._nodes.get(caller.log.session, ""))
        self._nodes[opened.child] = voice.node
        apart = live.workspace.root != self.root.workspace.root
        self._reach[voice.node] = live.registry.filter(()) if apart else live.registry
        return lambda: voice
