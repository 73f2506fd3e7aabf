"""Two runs of one image -> what differs between the machines they left behind."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.machine.physical.frames import TRAMPOLINE_FRAMES
from tests.system.plain import give_back
from tests.system.runs import Run

# Registers beside those of the trap frame: what else a guest can see of the way here.
MORE_REGISTERS = {
    "amd64": (
        *("cr0", "cr2", "cr3", "cr4", "cr8", "efer", "lstar", "star", "sfmask", "fs_base", "gs_base", "hflags"),
        *("idtr.base", "idtr.limit", "gdtr.base", "gdtr.limit", "tr.base", "cs", "ss", "ds", "es"),
        *(f"xmm{number}" for number in range(16)),
    ),
    "arm64": (
        *("pstate", "sp_el0", "elr_el1", "spsr_el1", "esr_el1", "far_el1", "vbar_el1", "sctlr_el1", "ttbr0_el1"),
        *("ttbr1_el1", "tcr_el1", "mair_el1", "tpidr_el0", "tpidr_el1", "cpacr_el1", "fpcr", "fpsr"),
        *(f"q{number}" for number in range(32)),
    ),
    "riscv64": (
        *("priv", "mstatus", "mepc", "mcause", "mtval", "mtvec", "mscratch", "mie", "mip", "medeleg", "mideleg"),
        *("sepc", "scause", "stval", "stvec", "sscratch", "satp", "fcsr"),
        *(f"f{number}" for number in range(32)),
    ),
}

_PART = 1 << 23  # bytes that are compared at once


class Finished(Protocol):
    """A plain run, and from where to where its text was moved: `tests.system.plain.Plain`."""

    @property
    def run(self) -> Run:
        """What it left behind."""
        ...

    @property
    def distances(self) -> tuple[int, ...]:
        """From link addresses to where the text ran."""
        ...


def differences(plain: Finished, patched: Run) -> list[str]:
    """Everything that a guest could tell the patched run by: console, time, how it ended, memory, registers."""
    before = plain.run
    found = [
        f"{what}: {one!r} -> {other!r}"
        for what, one, other in (
            ("end", before.end, patched.end),
            ("console", before.console, patched.console),
            ("time", before.time, patched.time),
            ("exit code", before.guest.system.exit_code, patched.guest.system.exit_code),
        )
        if one != other
    ]
    return [*found, *_registers(before, patched), *_memory(plain, patched)]


def _registers(plain: Run, patched: Run) -> Iterator[str]:
    arch = plain.guest.system.arch
    names = (*arch.registers, *MORE_REGISTERS[arch.name])
    for one, other in zip(plain.guest.system.cpus, patched.guest.system.cpus, strict=True):
        if (one.is_on, one.is_waiting, one.lines) != (other.is_on, other.is_waiting, other.lines):
            yield f"CPU {one.number}: is in another state"
        if other.fired:
            yield f"CPU {one.number}: is in a trampoline"
        for system, cpu in ((plain.guest.system, one), (patched.guest.system, other)):
            system._load(cpu)  # control registers in a saved state read as garbage
        for name in names:
            before, after = one.registers.get(name), other.registers.get(name)
            if before != after:
                yield f"CPU {one.number}: {name}: {before:#x} -> {after:#x}"


def _memory(plain: Finished, patched: Run) -> Iterator[str]:
    regions = [region for region in plain.run.guest.system.memory.regions if region.base < TRAMPOLINE_FRAMES]
    others = [region for region in patched.guest.system.memory.regions if region.base < TRAMPOLINE_FRAMES]
    for one, other in zip(regions, others, strict=True):
        before, after = np.frombuffer(one.view, np.uint8), np.array(other.view, np.uint8)
        give_back(other)
        if patched.guest.code is not None:
            for distance in plain.distances:
                _disarm(after, one.base, patched, distance)
        places = _unequal(before, after)
        give_back(one)
        for at in places[:10].tolist():
            yield f"memory at {one.base + at:#x}: {before[at]:#x} -> {after[at]:#x}, one of {len(places)}"


def _unequal(before: NDArray[np.uint8], after: NDArray[np.uint8]) -> NDArray[np.intp]:
    """Where bytes differ; a part at a time, for the memory that it takes."""
    parts = range(0, len(before), _PART)
    return np.concatenate([at + np.flatnonzero(before[at : at + _PART] != after[at : at + _PART]) for at in parts])


def _disarm(memory: NDArray[np.uint8], base: int, patched: Run, distance: int) -> None:
    """Put the original bytes where the breakpoints of sites are; elsewhere, no byte is forgiven."""
    table, loaded = patched.sites, patched.guest.loaded
    moved = distance - loaded.bias
    for size, armed in patched.guest.system.arch.engine.armed.items():
        rows = np.flatnonzero((table.manifest.sites["size"] == size) & table.is_armed)
        links = table.manifest.sites["address"][rows].tolist()
        places = [(loaded.physical(link) or 0) + moved - base for link in links]
        originals = table.manifest.sites["original"][rows].tolist()
        for place, original in zip(places, originals, strict=True):
            if 0 <= place <= len(memory) - len(armed) and memory[place : place + len(armed)].tobytes() == armed:
                memory[place : place + len(armed)] = np.frombuffer(original[: len(armed)], np.uint8)
