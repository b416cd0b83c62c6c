"""When Python looks for garbage: hardly while the program starts, and never in what the start has made."""

import gc

_STARTING = 200_000
"""Objects made between two looks; what a start imports is no garbage."""
_WORKING = (5_000, 20, 10)


def at_start() -> None:
    gc.set_threshold(_STARTING)


def started() -> None:
    """The program is complete: what it is made of is passed over from now on."""
    gc.freeze()
    gc.set_threshold(*_WORKING)
