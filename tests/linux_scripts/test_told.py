"""What is read of a run: between two readings, of tables, of the guest's own figures."""

from tests.linux_scripts.checks import CHECKS
from tests.linux_scripts.measures import MEASURES
from tests.linux_scripts.told import Figure, Run, histogram

TEXT = """before
<tracing
>
<tracing
softirqs timer 3
softirqs rcu 4
>
    81 sh                 15     82 sleep
<stat
tasks 5
>
<stat
tasks 7
>
<tracing
softirqs timer 5
softirqs rcu 4
softirqs sched 1
>
dd
           value  ------------- Distribution ------------- count
            2048 |                                         0
            4096 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 133

"""
CONSOLE = """=before stat
processes 96
[   15.1] a line of the kernel's
softirq 10 0 7 0
=before disk
       1        0        8
=after stat
processes 98
softirq 14 0 9 0
=events
"""
TRACE = """              sh-81      [000] d..1.    14.1: signal_generate: sig=15 errno=0
           sleep-82      [000] d..1.    14.2: signal_generate: sig=17 errno=0
           sleep-82      [000] d..1.    14.3: sys_openat(dfd: 4, filename: 0)
"""


def test_readings_are_subtracted() -> None:
    run = Run(TEXT, CONSOLE, TRACE)
    assert run.between("tracing", "softirqs") == {"timer": 2, "sched": 1}
    assert run.between("stat", "tasks") == {"": 2}
    assert run.lines(r"^ *\d+ sh +15 ") == 1
    assert histogram(run.text, "dd") == {2048: 0, 4096: 133}
    assert histogram(run.text, "cat") == {}


def test_the_guest_is_read() -> None:
    run = Run(TEXT, CONSOLE, TRACE)
    assert run.field("stat", "processes", 1) == 2
    assert run.field("stat", "softirq", 3) == 2
    assert run.gained("stat", r"^softirq (\d+)") == 4
    assert (run.event("signal_generate"), run.event("sys_openat"), run.event("sig")) == (2, 1, 0)
    assert run.traced(r"signal_generate: sig=(9|15) ") == 1


def test_what_differs_does_not_agree() -> None:
    run = Run(TEXT, CONSOLE, TRACE)
    assert all(one.agrees for one in CHECKS["forks"](run))
    fewer = Run(TEXT.replace("tasks 7", "tasks 6"), CONSOLE, TRACE)
    assert not any(one.agrees for one in CHECKS["forks"](fewer))
    assert not any(one.agrees for one in MEASURES["timers"](run))  # nothing on either side is no agreement
    assert [Figure("us", 95, 100, 5).agrees, Figure("us", 94, 100, 5).agrees] == [True, False]
