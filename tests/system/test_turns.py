"""Where CPUs' turns end is the guest's affair: what the engine stops for by itself does not show in what is printed."""

import pytest

from tests.system.cases import SAMPLES, Case
from tests.system.test_counted_hits import printed

# Drops are reported when something is drained, between two turns; the second clause has `printk` told of each hit.
PROGRAM = """#pragma D option switchrate=1ms
    #pragma D option statusrate=1ms
    fbt::printk:entry, fbt::smp_wait:entry, fbt::k*:entry { @calls[probefunc, cpu] = count(); }
    fbt::printk:entry { self->sp = speculation(); trace(timestamp); }
    tick-300us { printf("%d", timestamp); }"""


@pytest.mark.parametrize("case", SAMPLES, ids=lambda case: case.image)
@pytest.mark.parametrize("cpus", [1, 2])
def test_drops_are_reported_at_the_same_time(case: Case, cpus: int) -> None:
    told = printed(case, PROGRAM, "trap", cpus)
    assert told[2].count("speculation") > 1
    assert printed(case, PROGRAM, "auto", cpus) == told
    assert printed(case, PROGRAM, "block", cpus) == told


@pytest.mark.parametrize("case", SAMPLES, ids=lambda case: case.image)
def test_probes_that_watch_the_time_leave_the_turns_of_two_cpus_alone(case: Case) -> None:
    counting = 'fbt:::entry { @[probefunc, cpu] = max(timestamp); } END { printa("%s %d %@d\\n", @); }'
    ticking = "tick-230us { n++; } profile-300us { n++; }"
    options = "#pragma D option quiet\n"
    assert printed(case, options + counting + ticking, "auto", 2) == printed(case, options + counting, "auto", 2)
