"""A program -> in what its runs in our machine and under QEMU differ.

Whether it depends on the time, since an interrupt comes between its hits, shows in our own machine: then it prints
something else if instructions take longer there, and is not compared.
"""

from collections.abc import Sequence
from dataclasses import replace
from tempfile import NamedTemporaryFile
from typing import Final
from unittest.mock import patch

from kinst.runtime.cli import run as kinst_run
from kinst.runtime.unwinding.contexts import Contexts
from tests.agree.comparing import Agreement, broken, miscounted
from tests.agree.program import Program
from tests.agree.running import Outcome, invoked
from tests.agree.subjects import SLOWER
from tests.samples.machines import MACHINES

ENGINES: Final = ("auto", "qemu")
# What only QEMU has not, by its line: a jump at that place, a field of records, and a stack beyond its page.
_REFUSED: Final = ("cannot be jumps", "is not recorded", "has no probe", "is in no register", "in another page")
_BOUND: Final = "60s"


def compared_engines(program: Program, _methods: Sequence[str] = ENGINES) -> Agreement:
    """Run it by both. It did not run where QEMU refuses a part of it, or if it depends on the time."""
    ours, qemu = ENGINES
    told = run_by(ours, program)
    if told.is_refused:
        return Agreement(((ours, told),), ())
    beside = run_by(qemu, program)
    if any(one in beside.errors for one in _REFUSED):
        return _not_compared(beside.errors)
    found = broken(ours, told, qemu, beside)
    if found and _depends_on_time(program, told):
        return _not_compared("it depends on the time")
    return Agreement(((ours, told), (qemu, beside)), (*found, *miscounted(program, qemu, beside)))


def _not_compared(why: str) -> Agreement:
    return Agreement(((ENGINES[1], Outcome(1, "", f"kinst-run: {why}")),), ())


def _depends_on_time(program: Program, told: Outcome) -> bool:
    for duration in SLOWER:
        with patch("kinst.runtime.machine.clock.NANOSECONDS_PER_INSTRUCTION", duration):
            if run_by(ENGINES[0], program).printed != told.printed:
                return True
    return False


def run_by(engine: str, program: Program) -> Outcome:
    """Run it in this process. The console, which each engine shows when it likes, is behind what D printed."""
    # Records tell threads by their stacks, and an interrupt on a thread's stack has that thread's variables
    # (docs/guide/live.md). Our machine sees interrupts begin: here it must not, or `self->` differs.
    blind = patch.object(Contexts, "_begun", lambda _self, _interrupt: None)
    with NamedTemporaryFile() as console, blind:
        outcome = invoked(kinst_run, [*words_by(engine, program), "--console", console.name])
        printed = console.read().decode().replace("\r\n", "\n")
    return replace(outcome, output=outcome.output + printed)


def words_by(engine: str, program: Program) -> list[str]:
    """The command line behind `kinst-run`."""
    sample = MACHINES[program.image.removeprefix("kernel-")]
    command = " ".join(word for word in sample.qemu if word not in ("-bios", "none"))
    ways = {"auto": ["--clock", "icount", "--timeout", _BOUND], "qemu": ["--on", command, "--wall-timeout", _BOUND]}
    return [*ways[engine], *program.options(), "-n", program.text(), str(sample.image)]
