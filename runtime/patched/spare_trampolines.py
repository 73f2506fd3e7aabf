"""Instructions that need a trampoline of their own -> one, for machines whose trampolines end with a breakpoint.

A trampoline of the file serves every copy of its instruction as long as the trap path knows where a CPU in it came
from. One at whose end the engine resumes the CPU by itself serves one address. So each further copy of the code gets
another, and so does an instruction that refers to its own address.
"""

from typing import TYPE_CHECKING, Final

from kinst.runtime.patched.moved_trampolines import MovedTrampolines
from kinst.runtime.trap.arch.registry import out_of_line_trampoline

if TYPE_CHECKING:
    from kinst.runtime.machine.loading.loaded import Loaded
    from kinst.runtime.machine.system import System
    from kinst.targets.arch.facts import ArchFacts

_SLOTS: Final = 2  # of a trampoline: one out of line has two ends


class SpareTrampolines:
    """The trampolines of one image that are not in its file."""

    def __init__(self, system: "System", loaded: "Loaded", end: int) -> None:
        """There are none yet. `end` is the address at which they end if the image has no trampolines."""
        self._arch, self._armed = system.arch, system.arch.engine.armed
        self._out_of_line = out_of_line_trampoline(system.arch)
        step = _SLOTS * system.arch.slot_size
        self._slots = MovedTrampolines(system, self._made, loaded, end, step)
        self._known: dict[tuple[int, bytes, int], int | None] = {}

    def slot(self, kind: int, instruction: bytes, address: int) -> int | None:
        """The trampoline for an instruction at an address; None if it can have none."""
        key = kind, instruction, address
        if key not in self._known:
            self._known[key] = self._slots.slot(*key)
        return self._known[key]

    def _made(self, kind: int, instruction: bytes, address: int, slot: int) -> bytes | None:
        end, last = self._arch.return_breakpoint or 0, self._armed[max(self._armed)]
        if kind not in self._arch.out_of_line or self._out_of_line is None:
            return whole_slot(self._arch, instruction, last)
        code = self._out_of_line(kind, instruction, address, slot)
        return None if code is None else code[:end] + last + code[end + len(last) :]


def whole_slot(arch: "ArchFacts", instruction: bytes, last: bytes) -> bytes:
    """An instruction that does not refer to its own address, and the breakpoint that ends its trampoline."""
    end = arch.return_breakpoint or 0
    between = b"" if len(instruction) == end else arch.sized_nops[end - len(instruction)]
    return instruction + between + last


def spare_trampolines(system: "System", loaded: "Loaded", end: int) -> SpareTrampolines | None:
    """Those of a machine; None if its trampolines jump back, or if the engine handles no hits by itself. `end`: see
    `SpareTrampolines`."""
    if system.arch.return_breakpoint is None or system.trap.counted is None:
        return None
    return SpareTrampolines(system, loaded, end)
