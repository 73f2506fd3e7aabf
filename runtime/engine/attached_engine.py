"""The engine of a Qiling object that somebody else made and runs: its traps, registers, memory, blocks of code.

Traps come first to us, in front of Qiling's own dispatcher: what is no probe's goes on to it, and to the hooks that the
user and Qiling's OS layer have there. That dispatcher and the binding cost a trap some ten microseconds, so the engine
is asked by ctypes, as `kinst.runtime.engine.qiling_machine` does for our own machines.
"""

import ctypes
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import unicorn.unicorn_const as const
from qiling.core_hooks import hookcallback
from unicorn import UcError
from unicorn.unicorn_py3.unicorn import uclib

from kinst.runtime.engine.breakpoint_counters import BreakpointCounters
from kinst.runtime.engine.cpu_places import CpuPlaces
from kinst.runtime.engine.hit_records import ClockWord
from kinst.runtime.engine.live_pc import find_live_pc
from kinst.runtime.engine.native_hooks import BlockHook
from kinst.runtime.engine.registers.register_frame import RegisterFrame
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.errors import MachineError, UsageError

_EVERYWHERE: Final = (ctypes.c_uint64(1), ctypes.c_uint64(0))  # begin > end: at every address
_NO_INTERRUPT: Final = 1 << 32  # what no interrupt has as its number
_FOR_READING: Final = ctypes.c_int(const.UC_PROT_READ)
_BUFFER_SIZE: Final = 16  # bytes of the largest word that an instruction moves


class AttachedEngine:
    """What the trap path needs of a foreign engine. The user goes on running it."""

    def __init__(self, ql: Any, arch: ArchFacts) -> None:
        """Nothing is hooked yet."""
        self._ql = ql
        self._library = ctypes.CDLL(uclib._name)
        self._quick = ctypes.PyDLL(uclib._name)  # keeps Python's lock: releasing it costs more than a short call
        self._handle = ctypes.c_void_p(ql.uc._uch.value)
        constants = import_module(f"unicorn.{arch.engine.unicorn}_const")
        prefix = f"UC_{arch.engine.unicorn.upper()}_REG_"
        self._facts = arch.engine
        self._number_of: Callable[[str], int] = lambda name: getattr(constants, prefix + name.upper())
        self._numbers = [self._number_of(name) for name in arch.registers]
        self._no_time = ctypes.c_uint64()
        self.frame = RegisterFrame(self._quick, self._handle, self._numbers)
        self._pc = arch.pc
        self._vectors = [getattr(constants, f"{prefix}Q{number}", None) for number in range(32)]
        self._buffer = (ctypes.c_uint8 * _BUFFER_SIZE)()
        self._translated = ctypes.c_uint64()
        self._bytes = memoryview(self._buffer).cast("B")
        self._own: Any = None  # Qiling's hook that keeps its dispatcher in place
        self._hooks: list[int] = []
        self._kept: list[Any] = []  # callbacks that Unicorn points to

    # -- traps --------------------------------------------------------------------------------------------------------

    def claim_traps(
        self,
        handle: Callable[[int, int, int], None],
        failed: Callable[[BaseException], None],
    ) -> BreakpointCounters | None:
        """Call `handle(_, number, _)` for every interrupt before Qiling knows of it, but for the breakpoints that are
        set in the returned object; what it raises is lost. See `QilingMachine.on_interrupt`.

        Raises:
            UsageError: somebody else has claimed them.
        """
        ql, kind = self._ql, const.UC_HOOK_INTR
        if any(getattr(hook, "intno", None) == _NO_INTERRUPT for hook in ql._hook.get(kind, ())):
            raise UsageError("this Qiling object is traced already: detach() what traces it first")
        # As long as Qiling has a hook, its table has an entry for the dispatcher, which is what we put ours into.
        self._own = ql.hook_intno(_ignore, _NO_INTERRUPT)
        ql.uc.hook_del(ql._hook_fuc[kind])
        counters = self._counters()
        callbacks = counters.in_python(handle, failed, self._guarded)
        function, state = counters.callback(*(ctypes.cast(callback, ctypes.c_void_p) for callback in callbacks))
        ql._hook_fuc[kind] = handle_number = self._hook(kind, function, state)
        ql.uc._callbacks[handle_number] = counters, *callbacks  # so that Qiling can remove it like its own
        return counters if counters.is_native else None

    def _counters(self) -> BreakpointCounters:
        """What handles breakpoints without Python. Nobody counts instructions, and no time is recorded."""
        read_batch = ctypes.cast(self._library.uc_reg_read_batch, ctypes.c_void_p).value or 0
        place = find_live_pc(self._handle.value or 0, self._read_pc, self._write_pc)
        registers = self._numbers, self.frame.address, 0, self._pc
        places = CpuPlaces(place, read_batch, *registers, self._number_of)
        at = self._facts.breakpoint_number, self._facts.breakpoint_bias
        return BreakpointCounters(places, at, 0, ClockWord(ctypes.addressof(self._no_time)))

    def _guarded(self, call: Callable[[], None]) -> None:
        """What is raised in a callback cannot be raised through ctypes."""
        try:
            call()
        except BaseException as error:
            self.fail(error)

    def _read_pc(self) -> int:
        word = ctypes.c_uint64()
        self._quick.uc_reg_read(self._handle, ctypes.c_int(self._numbers[self._pc]), ctypes.byref(word))
        return word.value

    def _write_pc(self, address: int) -> None:
        """Set the PC, and leave no copy of it in memory."""
        word = ctypes.c_uint64(address)
        self._quick.uc_reg_write(self._handle, ctypes.c_int(self._numbers[self._pc]), ctypes.byref(word))
        word.value = 0

    def pass_on(self, number: int) -> None:
        """An interrupt that is no probe's goes where it would have gone without us."""
        ql, kind = self._ql, const.UC_HOOK_INTR
        if [hook for hook in ql._hook[kind] if hook is not self._own.obj]:
            hookcallback(ql, ql._hook_intr_cb)(ql.uc, number, (ql, kind))
        else:
            self.fail(UcError(const.UC_ERR_EXCEPTION))  # as Unicorn ends a run that nobody hooks

    def fail(self, error: BaseException) -> None:
        """Stop, and let `ql.run` raise `error`, as an error in one of Qiling's own hooks does."""
        self._ql.stop()
        self._ql._internal_exception = error

    # -- blocks of code -----------------------------------------------------------------------------------------------

    def hook_blocks(self) -> BlockHook:
        """A hook at the start of every block of code that is translated from now on; it looks at no block yet."""
        stop = ctypes.cast(self._library.uc_emu_stop, ctypes.c_void_p).value or 0
        hook = BlockHook(stop, self.fail)
        self._hooks.append(self._hook(const.UC_HOOK_BLOCK, *hook.callback()))
        self._kept.append(hook)
        return hook

    def _hook(self, kind: int, function: ctypes.c_void_p, data: ctypes.c_void_p | None) -> int:
        handle = ctypes.c_size_t()
        status = self._library.uc_hook_add(
            self._handle, ctypes.byref(handle), ctypes.c_int(kind), function, data, *_EVERYWHERE
        )
        self._check(status)
        return handle.value

    def release(self) -> None:
        """Give Qiling its dispatcher back; nothing is hooked any more, in code that was translated before either."""
        for handle in self._hooks:
            self._library.uc_hook_del(self._handle, ctypes.c_size_t(handle))
        self._hooks.clear()
        self.forget_all_code()
        if self._own is None:
            return
        ql, kind = self._ql, const.UC_HOOK_INTR
        ql.hook_del(self._own)  # and the dispatcher, if it was the last
        self._own = None
        if kind in ql._hook_fuc:
            ql.uc.hook_del(ql._hook_fuc[kind])
            ql._hook_fuc[kind] = ql._ql_hook_internal(kind, ql._hook_intr_cb, kind)

    def forget_all_code(self) -> None:
        """Translate everything anew: between runs."""
        self._ql.uc.ctl_flush_tb()

    # -- state --------------------------------------------------------------------------------------------------------

    def set_vector(self, number: int, value: int) -> None:
        """A SIMD register of 128 bits."""
        register = self._vectors[number]
        assert register is not None, "only arm64 loads one from beside its code"
        self._bytes[:] = value.to_bytes(_BUFFER_SIZE, "little")
        self._quick.uc_reg_write(self._handle, ctypes.c_int(register), self._buffer)

    def set_pc(self, address: int) -> None:
        """Go on elsewhere."""
        self.frame.regs[self._pc] = address
        self.frame.writer((self._pc,))()

    def translate(self, address: int) -> int:
        """The physical address that the CPU's tables give for a virtual one. MachineError: they give none."""
        place = ctypes.byref(self._translated)
        if self._quick.uc_vmem_translate(self._handle, ctypes.c_uint64(address), _FOR_READING, place):
            raise MachineError(f"nothing is mapped at {address:#x}")
        return self._translated.value

    def load(self, address: int, size: int) -> int:
        """A little-endian word of at most 16 bytes. MachineError: nothing is mapped there."""
        status = self._quick.uc_mem_read(self._handle, ctypes.c_uint64(address), self._buffer, ctypes.c_size_t(size))
        if status:
            raise MachineError(f"no memory at {address:#x} ({size:#x} bytes)")
        return int.from_bytes(self._bytes[:size], "little")

    def read(self, address: int, size: int) -> bytes:
        """Bytes. MachineError: not all of them are mapped."""
        data = ctypes.create_string_buffer(size)
        if self._quick.uc_mem_read(self._handle, ctypes.c_uint64(address), data, ctypes.c_size_t(size)):
            raise MachineError(f"no memory at {address:#x} ({size:#x} bytes)")
        return data.raw

    def write(self, address: int, data: bytes) -> None:
        """Bytes; code among them is translated anew. MachineError: not all of them are mapped."""
        if self._quick.uc_mem_write(self._handle, ctypes.c_uint64(address), data, ctypes.c_size_t(len(data))):
            raise MachineError(f"no memory at {address:#x} ({len(data):#x} bytes)")

    def forget_code(self, address: int, size: int) -> None:
        """Translate the code at an address anew; its bytes were changed, or it is to be hooked."""
        self._ql.uc.ctl_remove_cache(address, address + size)

    def _check(self, status: int) -> None:
        if status != const.UC_ERR_OK:
            raise UcError(status)


def _ignore(_ql: Any, _number: int) -> None:
    """A hook of Qiling's for an interrupt that does not exist."""
