"""Who is timed when, and what follows from the times. Needs nothing but Python: how a time is taken is the caller's."""

from __future__ import annotations

import statistics
from typing import Callable, Iterable

OURS = "assay"


def order(names: list[str], turn: int) -> list[str]:
    """The names from first to last, in every other turn from last to first: what heats the card for the next one then differs."""
    return list(names) if turn % 2 == 0 else list(reversed(names))


def interleaved(names: list[str], turns: int, measure: Callable[[str], float]) -> dict[str, list[float]]:
    """Measures each name once a turn."""
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(turns):
        for name in order(names, turn):
            times[name].append(measure(name))
    return times


def of_theirs(times: dict[str, list[float]], name: str) -> float:
    """Our rate over that of `name`: the median over the turns of its time over ours in the same turn."""
    return statistics.median(theirs / ours for theirs, ours in zip(times[name], times[OURS], strict=True))


def second_half(samples: Iterable[tuple[float, float]]) -> float:
    """The median value of the samples (moment, value) that were taken in the second half of the time."""
    taken = sorted(samples)
    middle = (taken[0][0] + taken[-1][0]) / 2
    return statistics.median(value for moment, value in taken if moment >= middle)


def calls_for(seconds: float, one_call: float) -> int:
    """How often to call for this time: at least once."""
    return max(1, round(seconds / one_call))
