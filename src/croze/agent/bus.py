"""The bus: whoever wants to know what a session does subscribes here; a watcher's error breaks nothing."""

from collections.abc import Callable

from croze.types.event import Event
from croze.types.news import ChildNews
from croze.types.stream import Delta

Item = Event | Delta | ChildNews
Watcher = Callable[[Item], None]


class Bus:
    """Publishes events, deltas and news of sub-agents to watchers, in order, on the event loop's thread.

    What a watcher raises is collected in `errors` (the newest hundred) and goes no further.
    """

    def __init__(self) -> None:
        self._watchers: list[Watcher] = []
        self.errors: list[Exception] = []

    def subscribe(self, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` with everything from now on; gives the function that ends it."""
        self._watchers.append(watcher)

        def unsubscribe() -> None:
            if watcher in self._watchers:
                self._watchers.remove(watcher)

        return unsubscribe

    def publish(self, item: Item) -> None:
        for watcher in tuple(self._watchers):
            try:
                watcher(item)
            except Exception as error:  # noqa: BLE001 - a watcher must never break a run
                self.errors.append(error)
                del self.errors[:-100]
