"""How the CPU gets past a displaced instruction without Python: by a jump at the end of its trampoline, or straight to
where the instruction leads if it does nothing else."""

from collections.abc import Callable
from typing import NoReturn

from kinst.runtime.paging.walker import Access, PageFault
from kinst.runtime.trap.arch.emulator import Emulation
from kinst.runtime.trap.arch.registry import jump
from kinst.runtime.trap.trap import SiteCounter
from kinst.runtime.trap.trap_frame import TrapFrame
from kinst.targets.arch.facts import ArchFacts


def end_with_jumps(
    counter: SiteCounter,
    arch: ArchFacts,
    last: bytes,
    fetch: Callable[[int, int], bytes],
    fill: Callable[[int, bytes], None],
) -> None:
    """Let `counter` end trampolines with jumps, on machines whose trampolines end with a breakpoint.

    Args:
        counter: handles the sites that use the trampolines.
        arch: the machine.
        last: that breakpoint.
        fetch: reads code of trampolines: an address and a size.
        fill: writes it.
    """
    make, end = jump(arch), arch.return_breakpoint
    if make is None or end is None:
        return

    def close(slot: int, code: bytes) -> None:
        fill(slot, fetch(slot, end) + code)

    def jump_back(slot: int, target: int) -> bool:
        code = make(slot + end, target)
        if code is not None:
            close(slot, code)
        return code is not None

    counter.end_with(jump_back, lambda slot: close(slot, last))


def target_of(arch: ArchFacts, emulation: Emulation, address: int) -> int:
    """Where an instruction at an address leads that reads neither registers nor memory."""
    regs = [0] * len(arch.registers)
    regs[arch.pc] = address
    emulation.run(TrapFrame(regs, _no_load, _no_store, lambda _number, _value: None))
    return int(regs[arch.pc])  # an emulation may compute with numbers of numpy


def _no_load(address: int, _size: int) -> NoReturn:
    raise PageFault(address, Access.READ, 0)


def _no_store(address: int, _size: int, _value: int) -> NoReturn:
    raise PageFault(address, Access.WRITE, 0)
