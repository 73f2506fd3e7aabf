"""Identifiers of probes: 1, 2, 3 are dtrace:::BEGIN, END and ERROR, as in DTrace; then timers; from FIRST_PROBE_ID on
what the image has, and after that what other providers make."""

from typing import Final

TIMER_IDS: Final = range(4, 1004)
FIRST_PROBE_ID: Final = TIMER_IDS.stop
