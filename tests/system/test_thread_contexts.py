"""self-> belongs to the thread: on Linux beside the task that the kernel itself says is current; and in interrupts."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.runtime.clauses.environment import GuestProfile
from kinst.runtime.clauses.profiles import BareProfile, Guest
from kinst.runtime.cli import run
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.system import System
from kinst.runtime.tracing.guests import building
from kinst.runtime.tracing.images.preparing import Prepared
from kinst.runtime.trap.faults import Fault
from kinst.runtime.trap.trap import Firing
from tests.images import at_hand, real_image

ENOUGH = "clocksource: Switched to clocksource"  # threads of all kinds sleep and wake by then
SLEEPERS = ("__schedule", "schedule", "schedule_timeout", "mutex_lock", "wait_for_completion", "msleep", "kthread")
# Entry to return of functions that sleep; and, where a compiler or the kernel left no returns, from entry to entry of
# one thread, until it is dead: its stack serves another one then.
PROGRAM = """self uint64_t owner;
{entries} {{ self->task[probefunc] = (uint64_t)curthread; @entries = count(); }}
{returns} /self->task[probefunc]/ {{
    @found = count(); @wrong = sum(self->task[probefunc] != (uint64_t)curthread); self->task[probefunc] = 0; }}
{returns} {{ @returns = count(); }}
fbt::schedule:entry, fbt::mutex_lock:entry, fbt::kmem_cache_alloc*:entry, fbt::__kmalloc:entry
/self->owner && self->owner != (uint64_t)curthread/ {{ @mixed = count(); }}
fbt::schedule:entry, fbt::mutex_lock:entry, fbt::kmem_cache_alloc*:entry, fbt::__kmalloc:entry
{{ self->owner = (uint64_t)curthread; @owned = count(); @threads[(uint64_t)curthread] = count(); }}
fbt::do_task_dead:entry {{ self->owner = 0; }}
END {{ printa("entries %@d\\n", @entries); printa("returns %@d\\n", @returns); printa("found %@d\\n", @found);
    printa("wrong %@d\\n", @wrong); printa("mixed %@d\\n", @mixed); printa("owned %@d\\n", @owned);
    trunc(@entries); trunc(@returns); trunc(@found); trunc(@wrong); trunc(@mixed); trunc(@owned);
    printa("thread %x %@d\\n", @threads); trunc(@threads); }}
"""


@dataclass
class Oracle(BareProfile):
    """A profile whose `curthread` is what the kernel's own way to its current task gives."""

    guest: Guest
    task: Callable[[], int]

    def __post_init__(self) -> None:
        super().__init__(self.guest.name, self.guest.is_user, self.guest.threads)

    def integer(self, firing: Firing, name: str) -> int:
        return self.task() if name == "curthread" else 0


def current_task(system: System, loaded: Loaded, guest: Guest) -> Callable[[], int]:
    """Where each machine's kernel has it: tp, SP_EL0, or a variable of the CPU's own that GS leads to."""
    live = system.engine.live
    if guest.arch.name != "amd64":
        name = "tp" if guest.arch.name == "riscv64" else "sp_el0"
        return lambda: live.get(name)
    symbols = loaded.image.symbols
    offset = symbols.address_of("current_task") or symbols.address_of("pcpu_hot")  # the first member, from 6.2 to 6.14
    assert offset is not None

    def task() -> int:
        try:
            return guest.memory.load(live.get("gs_base") + offset & (1 << 64) - 1, 8)
        except Fault:  # before there is a per-CPU area
            return 0

    return task


@pytest.mark.long  # the gate boots Linux into user space in test_user_space.py, and tells its tasks apart there
@pytest.mark.parametrize("name", at_hand("linux-amd64", "linux-arm64", "linux-riscv64"))
def test_on_linux_self_is_the_tasks(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[tuple[System, Loaded]] = []
    load = building._loaded

    def kept(prepared: Prepared, system: System) -> Loaded:
        loaded.append((system, load(prepared, system)))
        return loaded[-1][1]

    def oracle(guest: Guest, _systems: object, _wanted: str) -> GuestProfile:
        return Oracle(guest, current_task(*loaded[-1], guest))

    monkeypatch.setattr(building, "_loaded", kept)
    monkeypatch.setattr(building, "profile_for", oracle)
    entries, returns = (", ".join(f"fbt::{name}:{end}" for name in SLEEPERS) for end in ("entry", "return"))
    program = PROGRAM.format(entries=entries, returns=returns)
    options = ("-q", "-Z", "--clock", "icount", "--console", str(tmp_path / "console"), "--until", ENOUGH)
    append = ("--append", "console=ttyS0 panic=-1") if name.endswith("amd64") else ()
    result = CliRunner().invoke(run, [*options, *append, "-n", program, str(real_image(name))])
    assert result.exit_code == 0, result.stderr
    assert ENOUGH in (tmp_path / "console").read_text()
    counts = {word: int(number) for word, number in re.findall(r"^(\w+) (\d+)$", result.stdout, re.MULTILINE)}
    assert counts.get("mixed", 0) == 0
    assert counts["owned"] > 10_000
    assert len(re.findall("^thread", result.stdout, re.MULTILINE)) > 20
    assert counts.get("wrong", 0) == 0
    assert counts.get("found", 0) == counts.get("returns", 0)


# Ticks come while the kernel's only thread runs, and on its stack; clock_tick() is called from nowhere else.
INTERRUPTED = """
self int here; self int tick[int];
fbt::rpc_*:entry, fbt::client_*:entry, fbt::clock_wait:entry { self->here = 1; @entered = count(); }
fbt::clock_tick:entry { @at_first[self->here + self->tick[3]] = count(); self->tick[3] = 1; }
fbt::clock_tick:return { @at_last[self->tick[3] - self->here] = count(); }
fbt::rpc_*:return, fbt::client_*:return, fbt::clock_wait:return { @back[self->here - self->tick[3]] = count(); }
END { printa("entered %@d\\n", @entered); printa("first %d %@d\\n", @at_first); printa("last %d %@d\\n", @at_last);
    printa("back %d %@d\\n", @back); trunc(@entered); trunc(@at_first); trunc(@at_last); trunc(@back); }
"""


@pytest.mark.parametrize("machine", ["amd64", "arm64", "riscv64"])
def test_an_interrupt_has_variables_of_its_own(machine: str) -> None:
    options = ("-q", "--clock", "icount", "--console", "/dev/null", "-x", "dynvarsize=4096")
    result = CliRunner().invoke(run, [*options, "-n", INTERRUPTED, f"samples/kernel-{machine}.elf"])
    assert result.exit_code == 0, result.stderr
    assert "drop" not in result.stderr  # what a handler kept is freed
    words = [line.split() for line in result.stdout.splitlines() if line]
    assert [word[:2] for word in words[1:]] == [["first", "0"], ["last", "1"], ["back", "1"]], result.stdout
    ticks = int(words[1][2])
    assert ticks == int(words[2][2]) > 15
