"""Counts of a sample kernel's functions in two runs -> those that its clock does not explain.

How many ticks come depends on the time of the host: the clock stops after a number of ticks that were handled, and one
that comes in a critical section (`samples/kernel/callout.c`) is only counted; the section's end handles it, and all
others that came there, in one go. So:

- each tick is a trap: as many more of those as of ticks,
- whatever is not a tick's own is there as often in both runs: what callouts do goes by ticks handled,
- the wheel is turned by each tick outside such a section, and by the end of each section with a tick in it.
"""

from collections.abc import Mapping
from typing import Final

_TICK: Final = "clock_tick"
_TRAPS: Final = ("trap_vector", "trap_common", "trap_handler")  # the first or the second, by the machine
_SECTION_ENDED: Final = "critical_exit_preempt"
_TURNED: Final = "callout_process"


def unexplained(there: Mapping[str, int], here: Mapping[str, int]) -> dict[str, int]:
    """Functions of `there`, with their counts, which are none that a run of the same program could have.

    No tick of `here` comes in a critical section. A function that `there` lacks may have no probe.
    """
    assert _SECTION_ENDED not in here
    ticks, sections = there[_TICK], there.get(_SECTION_ENDED, 0)
    more = ticks - here[_TICK]
    expected = dict(here) | {name: here[name] + more for name in (_TICK, *_TRAPS) if name in here}
    wrong = {name for name in there if there[name] != expected.get(name)} - {_TURNED, _SECTION_ENDED}
    if more < 0 or (more and not sections):  # a tick elsewhere turns the wheel, which stops in time
        wrong.add(_TICK)
    turned = there.get(_TURNED, ticks)
    if not (sections <= turned <= ticks if sections else turned == ticks):
        wrong.add(_TURNED)
    return {name: there[name] for name in sorted(wrong)}
