"""One Unicorn engine, made by Qiling: bare callbacks, registers by name, run until something happens.

Only this package uses Qiling and Unicorn. The bindings' own hook and register layers take several microseconds per
call, so everything here calls the library through ctypes, with buffers that are bound once. It reports numbers: an
exception number, a TLB miss, a port access. Their meaning is decided elsewhere.
"""

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, Final, TypeVar

import unicorn.arm64_const
import unicorn.unicorn_const as const
import unicorn.x86_const
from unicorn.unicorn_py3.unicorn import uclib

from kinst.runtime.engine.address_stops import AddressStops
from kinst.runtime.engine.bare_qiling import BareQiling
from kinst.runtime.engine.block_watch import BlockWatch
from kinst.runtime.engine.breakpoint_counters import BreakpointCounters
from kinst.runtime.engine.code_watch import CodeWatch
from kinst.runtime.engine.counting import Counting
from kinst.runtime.engine.cpu_places import CpuPlaces
from kinst.runtime.engine.emulator import EVERYWHERE
from kinst.runtime.engine.fault_address import CANARY, exact_address
from kinst.runtime.engine.hit_records import ClockWord
from kinst.runtime.engine.library import loaded_library
from kinst.runtime.engine.live_pc import find_live_pc
from kinst.runtime.engine.native_hooks import BlockHook, BlockMarks, InstructionCounter
from kinst.runtime.engine.one_instruction import Hook, OneInstruction, Unhook
from kinst.runtime.engine.registers.cpu_states import CpuStates
from kinst.runtime.engine.registers.general_registers import general_registers
from kinst.runtime.engine.registers.register_file import RegisterFile
from kinst.runtime.engine.registers.register_frame import RegisterFrame
from kinst.runtime.engine.reports import Stop, TlbFill, Window
from kinst.runtime.engine.system_instructions import (
    TLBI_OF_ADDRESSES,
    Encoding,
    SystemInstructionFilter,
    encoding_of,
    operand_of,
    tlbi_address,
)
from kinst.runtime.engine.walk_cache import WalkCache
from kinst.runtime.engine.windowed.windows import callbacks, widen
from kinst.runtime.paging.walker import Access
from kinst.targets.arch.facts import ArchFacts

_Handle = ctypes.c_void_p
_Result = TypeVar("_Result")
_TLB_FILL = ctypes.CFUNCTYPE(
    ctypes.c_bool, _Handle, ctypes.c_uint64, ctypes.c_int, ctypes.POINTER(ctypes.c_uint64), _Handle
)
_PORT_IN = ctypes.CFUNCTYPE(ctypes.c_uint32, _Handle, ctypes.c_uint32, ctypes.c_int, _Handle)
_PORT_OUT = ctypes.CFUNCTYPE(None, _Handle, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint32, _Handle)
_CODE = ctypes.CFUNCTYPE(None, _Handle, ctypes.c_uint64, ctypes.c_uint32, _Handle)
_INSTRUCTION = ctypes.CFUNCTYPE(ctypes.c_uint32, _Handle, _Handle)

# uc_ctl's control word: the direction in bits 31:30, the number of arguments in bits 29:26, the request below them.
_FLUSH_TLB: Final = const.UC_CTL_IO_WRITE << 30 | const.UC_CTL_TLB_FLUSH
_FORGET_CODE: Final = const.UC_CTL_IO_WRITE << 30 | 2 << 26 | const.UC_CTL_TB_REMOVE_CACHE
_ACCESS: Final = {
    const.UC_MEM_READ: Access.READ,
    const.UC_MEM_WRITE: Access.WRITE,
    const.UC_MEM_FETCH: Access.FETCH,
}


class QilingMachine:
    """The engine: one address space of physical memory, one CPU's state at a time."""

    def __init__(self, arch: ArchFacts, stopped: Callable[[], None] | None = None) -> None:
        """Open an empty machine. `stopped` is called when a hook of the user's stops it; None: the run just ends."""
        self._facts = facts = arch.engine
        self._constants = import_module(f"unicorn.{facts.unicorn}_const")
        model = None if facts.cpu_model is None else getattr(self._constants, facts.cpu_model)
        self._ql = BareQiling(facts, model, stopped or self.stop, self._forget_everything)
        self._library = loaded_library()
        # Short calls keep Python's lock, since releasing it would take longer than the calls.
        self._quick = ctypes.PyDLL(uclib._name)
        self._handle = ctypes.c_void_p(self._ql.uc._uch.value)
        self._kept: list[Any] = []  # what Unicorn points to: it holds no reference
        self._raised: BaseException | None = None
        self.called_back = 0  # how often devices and models of the CPU were asked for something
        self._fault: tuple[int, Access] | None = None
        self.blocks = BlockHook(self._stop_function(), self.fail)
        self.block_counters = self.blocks.counters
        self._counted_for: tuple[Callable[[int], None], ...] = (self.block_counters.use, self.blocks.run_as)
        self._translated, self._virtual, self._pc_value = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_uint64()
        at = ctypes.c_void_p(ctypes.addressof(self._translated))
        self._translate = tuple(  # indexed by Access; bound once, since the trap path needs it at every push
            partial(self._quick["uc_vmem_translate"], self._handle, self._virtual, ctypes.c_int(protection), at)
            for protection in (const.UC_PROT_READ, const.UC_PROT_WRITE, const.UC_PROT_EXEC)
        )
        self.interrupt_bias = facts.interrupt_bias
        self.error, self._pc = "", arch.pc
        self.one = OneInstruction(self._stop_function(), self._hook_anew)
        self._register_names = arch.registers
        self._frame_numbers = [self._register_number(name) for name in arch.registers]
        self.frame = RegisterFrame(self._quick, self._handle, self._frame_numbers)
        self._write_pc = self.frame.writer((arch.pc,))
        self._pc_number = self._register_number(arch.registers[arch.pc])
        at = ctypes.c_void_p(ctypes.addressof(self._pc_value))
        self._read_pc = partial(self._quick.uc_reg_read, self._handle, ctypes.c_int(self._pc_number), at)
        self._set_up()

    def _set_up(self) -> None:
        # No exit address: address 0 is guest code like any other (U-Boot on arm64 starts there).
        self._ql.uc.ctl_exits_enabled(enable=True)
        # Each TLB miss comes to us, with paging off as well: Unicorn's own TLB sends every store of a guest without
        # paging down its slow path (45 to 60 ns), and cannot fetch where a kernel is linked before its tables exist.
        self._ql.uc.ctl_set_tlb_mode(const.UC_TLB_VIRTUAL)
        self._tlb_fill: TlbFill = lambda _address, _access: None
        callback = _TLB_FILL(self._on_tlb_fill)
        self._kept.append(callback)
        self.states = CpuStates(self._library, self._handle, self._register_number, self._facts)
        self._live = self.states.live
        self._walks = WalkCache(ctypes.cast(callback, ctypes.c_void_p), self._live)
        self.hook(const.UC_HOOK_TLB_FILL, *self._walks.hook())
        self._counting = Counting(self, (self._library, self._handle), self._facts, self.blocks)
        self._find_fault_address()

    @property
    def ql(self) -> BareQiling:
        """Its Qiling object, for whoever uses the engine beside us. They may hook it by Qiling, by Unicorn's Python or
        by its library, and need not say so: instructions are counted one by one from now on."""
        self._counting.share()
        return self._ql

    # -- callbacks ----------------------------------------------------------------------------------------------------

    def _hook(self, kind: int, callback: Any, *extra: Any, bounds: tuple[int, int] = EVERYWHERE) -> None:
        """Call Python for what an instruction at an address in `bounds` does."""
        self._kept.append(callback)
        self.hook(kind, self._counting.alone(callback), _Handle(), *extra, bounds=bounds)

    def on_tlb_fill(self, fill: TlbFill) -> None:
        """Call `fill` for every TLB miss."""
        self._tlb_fill = fill

    def keep_walks(self, context: Mapping[str, int]) -> WalkCache:
        """From now on, `fill` is not called for a translation that is kept in the returned object. `context` has the
        registers that translations depend on, and which of their bits."""
        self._walks.compare(self._library, context, self._facts.privilege)
        return self._walks

    def _on_tlb_fill(self, _uc: int, address: int, kind: int, entry: Any, _data: int) -> bool:
        access = _ACCESS.get(kind, Access.READ)
        try:
            found = self._tlb_fill(address, access)
        except BaseException as error:
            self.fail(error)
            found = None
        if found is None:
            self._fault = address, access  # Unicorn ends the run with an error, which `run` reports as a fault
            return False
        entry[0], entry[1] = found  # struct uc_tlb_entry {uint64_t paddr; uint32_t perms;}
        return True

    def on_interrupt(
        self, handle: Callable[[int, int, int], None], failed: Callable[[BaseException], None], clock: ClockWord
    ) -> BreakpointCounters | None:
        """Call `handle(_, number, _)` for every exception that QEMU raises, between two instructions, except for the
        breakpoints that are set in the returned object: those are counted, recorded or dispatched. Every hit comes this
        way, so Unicorn calls `handle` with nothing in between: what it raises is lost, and it must call `fail`.

        Args:
            handle: the callback.
            failed: called with what a dispatched hit raises; it sets the PC at which the CPU continues.
            clock: where records take their time from.

        Returns: None where nothing can be counted.
        """
        read_batch = ctypes.cast(self._library.uc_reg_read_batch, ctypes.c_void_p).value or 0
        place = find_live_pc(self._handle.value or 0, self.pc, self._write_pc_only)
        general = 0 if place is None else general_registers(place, self.states, self._register_names[: self._pc])
        registers = self._frame_numbers, self.frame.address, general, self._pc
        raised = self._facts.words.get("exception_is_int") if general else None
        places = CpuPlaces(place, read_batch, *registers, self._register_number, raised and general + raised[0])
        at = self._facts.breakpoint_number, self._facts.breakpoint_bias
        counters = BreakpointCounters(places, at, self.counter.word if self.counter else 0, clock)
        self._counting.settle_before(counters)
        callbacks = counters.in_python(handle, failed, partial(self._guarded, None))
        self._kept += *callbacks, counters
        addresses = (ctypes.cast(callback, ctypes.c_void_p) for callback in callbacks)
        self.hook(const.UC_HOOK_INTR, *counters.callback(*addresses))
        self._counted_for += (counters.use,)
        return counters if counters.is_native else None

    def count_for(self, cpu: int) -> None:
        """Attribute hits to this CPU from now on, by its number."""
        for use in self._counted_for:
            use(cpu)

    def on_ports(self, ports: Window) -> None:
        """Send amd64's in and out to `ports`; the port is the offset."""

        def port_in(_uc: int, port: int, size: int, _data: int) -> int:
            return self._guarded(0, ports.read, port, size)

        def port_out(_uc: int, port: int, size: int, value: int, _data: int) -> None:
            self._guarded(None, ports.write, port, size, value)

        self._hook(const.UC_HOOK_INSN, _PORT_IN(port_in), ctypes.c_int(unicorn.x86_const.UC_X86_INS_IN))
        self._hook(const.UC_HOOK_INSN, _PORT_OUT(port_out), ctypes.c_int(unicorn.x86_const.UC_X86_INS_OUT))

    def on_instruction(self, name: str, handle: Callable[[], bool]) -> None:
        """Call `handle` before amd64's instruction `name`; True skips it."""

        def callback(_uc: int, _data: int) -> int:
            return int(self._guarded(0, handle))

        number = getattr(unicorn.x86_const, f"UC_X86_INS_{name.upper()}")
        self._hook(const.UC_HOOK_INSN, _INSTRUCTION(callback), ctypes.c_int(number))

    def on_code(self, address: int, handle: Callable[[], None]) -> None:
        """Call `handle` before the instruction at a virtual address, which was not translated yet. If it writes the
        PC of `live`, the CPU goes on there; not by `set_pc`: Unicorn's uc_reg_write_batch does not end the block."""

        def callback(_uc: int, _address: int, _size: int, _data: int) -> None:
            self._guarded(None, handle)

        self._hook(const.UC_HOOK_CODE, _CODE(callback), bounds=(address, address))

    def on_system_registers(
        self,
        registers: Iterable[Encoding],
        read: Callable[[Encoding], int | None],
        write: Callable[[Encoding, int], bool],
    ) -> None:
        """Call `read` at arm64's MRS and `write` at MSR of `registers`. If they return None or False, Unicorn handles
        it."""
        zero = unicorn.arm64_const.UC_ARM64_REG_XZR  # as a destination it discards the value (Arm ARM C1.2.5)
        buffer = ctypes.c_uint64()

        def move_from(_uc: int, register: int, fields: Any, _data: int) -> int:
            value = self._guarded(None, read, encoding_of(fields))
            if value is None:
                return 0
            buffer.value = value
            if register != zero:
                self._library.uc_reg_write(self._handle, ctypes.c_int(register), ctypes.byref(buffer))
            return 1

        def move_to(_uc: int, _register: int, fields: Any, _data: int) -> int:
            return int(self._guarded(0, write, encoding_of(fields), operand_of(fields)))

        wanted = frozenset(registers)
        self._hook_system_instructions(unicorn.arm64_const.UC_ARM64_INS_MRS, wanted, move_from)
        self._hook_system_instructions(unicorn.arm64_const.UC_ARM64_INS_MSR, wanted, move_to)

    def on_tlb_invalidation(self, handle: Callable[[int], None]) -> None:
        """Call `handle` before arm64's TLBI of a virtual address. Other machines do not need this."""
        if not self._facts.tells_invalidations:
            return

        def invalidate(_uc: int, _register: int, fields: Any, _data: int) -> int:
            self._guarded(None, handle, tlbi_address(fields))
            return 0

        self._hook_system_instructions(unicorn.arm64_const.UC_ARM64_INS_SYS, TLBI_OF_ADDRESSES, invalidate)

    def _hook_system_instructions(self, kind: int, wanted: Iterable[Encoding], handle: Any) -> None:
        is_flush = kind == unicorn.arm64_const.UC_ARM64_INS_SYS  # which asks for no time
        chosen = SystemInstructionFilter(wanted, handle, None if is_flush else self._counting.alone)
        self._kept.append(chosen)
        self.hook(const.UC_HOOK_INSN, *chosen.callback(), ctypes.c_int(kind))

    def _guarded(self, default: _Result, function: Callable[..., _Result], *arguments: object) -> _Result:
        """A callback's result. ctypes prints and drops what it raises: it is kept, and `run` ends and raises it."""
        self.called_back += 1
        try:
            return function(*arguments)
        except BaseException as error:
            self.fail(error)
            return default

    def fail(self, error: BaseException) -> None:
        """Stop, and let `run` raise `error`."""
        if self._raised is None:
            self._raised = error
        self.stop()

    # -- memory -------------------------------------------------------------------------------------------------------

    def map_memory(self, address: int, buffer: Any) -> None:
        """Let a writable host buffer be physical memory."""
        view = (ctypes.c_uint8 * len(buffer)).from_buffer(buffer)
        self._kept.append(view)
        status = self._library.uc_mem_map_ptr(
            self._handle,
            ctypes.c_uint64(address),
            ctypes.c_uint64(len(buffer)),
            ctypes.c_uint32(const.UC_PROT_ALL),
            ctypes.c_void_p(ctypes.addressof(view)),
        )
        self._check(status)
        self._ql.knows_memory(address, len(buffer))

    def map_window(self, address: int, size: int, window: Window, *, is_wide: bool = False) -> None:
        """Send accesses to [address, address + size) to `window`; both page-aligned. Those of eight bytes come in two
        halves, unless it `is_wide`."""
        read, write = functions = callbacks(window, self._guarded)
        self._kept.append(functions)
        bounds = ctypes.c_uint64(address), ctypes.c_uint64(size)
        reads, writes = (self._counting.alone(callback, is_memory=True) for callback in (read, write))
        self._check(self._library.uc_mmio_map(self._handle, *bounds, reads, None, writes, None))
        if is_wide:
            widen(self._handle.value or 0, address, size, (reads.value or 0, writes.value or 0))
        self._ql.knows_window(address, size, window.read, window.write)

    def translator(self, access: Access) -> Callable[[int], int | None]:
        """A function from virtual to physical addresses, for accesses by the running CPU through its TLB; None: a
        fault."""
        virtual, physical, call = self._virtual, self._translated, self._translate[access]

        def translate(address: int) -> int | None:
            virtual.value = address
            if not call():
                return physical.value
            self._fault = None  # the caller handles it: it is not the reason if the run ends now
            return None

        return translate

    def flush_tlb(self) -> None:
        """Empty the TLB, the running CPU's included. This is possible inside callbacks."""
        self._library.uc_ctl(self._handle, ctypes.c_int(_FLUSH_TLB))

    def forget_code(self, address: int, size: int) -> None:
        """Translate the code at a virtual address again: its bytes were changed from outside."""
        # Only stores by the guest invalidate translated code by themselves; uc_mem_write and host stores do not.
        end = ctypes.c_uint64(address + size)
        self._library.uc_ctl(self._handle, ctypes.c_int(_FORGET_CODE), ctypes.c_uint64(address), end)

    def forget_all_code(self) -> None:
        """Translate all code again."""
        self._ql.uc.ctl_flush_tb()

    def _forget_everything(self) -> None:
        self.flush_tlb()
        self.forget_all_code()

    # -- running ------------------------------------------------------------------------------------------------------

    def count_instructions(self) -> InstructionCounter:
        """Start to count. Nothing runs before the counter grants it."""
        return self._counting.start(self._stop_function())

    @property
    def counter(self) -> InstructionCounter | None:
        """What counts instructions; None if nobody has asked for it."""
        return self._counting.counter

    def watch_blocks(self, notify: Callable[[int], None]) -> BlockWatch:
        """See `BlockWatch`."""
        return BlockWatch(self.blocks.marks, notify)

    def _stop_function(self) -> int:
        return ctypes.cast(self._library.uc_emu_stop, ctypes.c_void_p).value or 0

    def _hook_anew(self, hook: Hook) -> Unhook:
        """Hook every instruction, also of code that was translated before; returns what removes the hook."""
        self.forget_all_code()
        return partial(self.unhook, self.hook(const.UC_HOOK_CODE, *hook))

    def unhook(self, handle: ctypes.c_size_t) -> None:
        """Remove a hook."""
        # Unicorn translates addresses of code that has the hook again. What the guest has unmapped is no fault.
        fill, self._tlb_fill = self._tlb_fill, lambda _address, _access: None
        self._check(self._library.uc_hook_del(self._handle, handle))
        self._tlb_fill = fill

    def hook(
        self, kind: int, function: _Handle, data: _Handle, *extra: Any, bounds: tuple[int, int] = EVERYWHERE
    ) -> ctypes.c_size_t:
        """Have Unicorn call machine code at addresses from the first to the last of `bounds`. Returns its handle."""
        handle = ctypes.c_size_t()
        where = self._handle, ctypes.byref(handle), ctypes.c_int(kind), function, data, *map(ctypes.c_uint64, bounds)
        self._check(self._library.uc_hook_add(*where, *extra))
        return handle

    def watch_interrupt_mask(self, register: str, mask: int, inverted: int) -> None:
        """Set how the guest masks interrupts: bits of a register that mask if all are 1, or 0 for those in
        `inverted`."""
        read = ctypes.cast(self._library.uc_reg_read, ctypes.c_void_p).value or 0
        self.blocks.watch(read, self._register_number(register), mask, inverted)

    def stop_before(self, is_wanted: Callable[[int], bool]) -> AddressStops:
        """See `AddressStops`."""
        return AddressStops(self, self._counting, is_wanted)

    def watch_code(self, reached: Callable[[int], None]) -> CodeWatch:
        """See `CodeWatch`."""
        return CodeWatch(self, self._counting, reached)

    def look_at_blocks(self, look: Callable[[int, int], None]) -> BlockMarks:
        """Call `look` with the address (the PC) and size of each block that begins or ends at a marked address."""
        self.blocks.marks.looks.append(look)
        return self.blocks.marks

    def look_at(self, address: int) -> None:
        """Call what observes blocks for an address that the CPU has reached although there is no code."""
        self.blocks.marks.look(address, 0)

    def stop_when_unmasked(self) -> None:
        """End the next run at a block, but not at its first, at which interrupts are not masked."""
        self.blocks.request_when_unmasked()

    def set_trampolines(self, address: int, size: int, slot_size: int) -> None:
        """Do not end a run in [address, address + size), and count only the first instruction of a slot there."""
        self.blocks.set_trampolines(address, size)
        self.one.set_trampolines(address, size, slot_size)
        self._counting.set_trampolines(address, size, slot_size)

    def run(self) -> Stop:
        """Run from the CPU's PC until something happens. Raises what a callback raised."""
        self.one.begin(is_granted=self.counter is not None)
        status = self._counting.run(self._start, self.pc)
        is_spent = self.counter is not None and self.counter.has_stopped
        is_one = self.one.end()  # not before: what it calls may take the budget back
        # Not before the run: the clock's thread may ask for a stop before it begins.
        is_asked = is_one and status == const.UC_ERR_OK
        reason = Stop.REQUESTED if is_asked else self._stop_reason(status, is_spent=is_spent)
        self.blocks.end(self.pc, is_spent=is_one or is_spent)
        error, self._raised = self._raised or self._ql.taken_error(), None
        if error is not None:
            raise error
        return reason

    def _start(self) -> tuple[int, bool]:
        self._fault = None
        status = self._library.uc_emu_start(self._handle, self.pc(), 0, 0, 0)
        return status, self._fault is not None and self._fault[1] is Access.FETCH

    def _stop_reason(self, status: int, *, is_spent: bool) -> Stop:
        if status == const.UC_ERR_OK:
            return Stop.REQUESTED if self.blocks.has_stopped or is_spent else Stop.HALTED
        if status == const.UC_ERR_INSN_INVALID:
            return Stop.UNDEFINED
        if self._fault is not None:  # whatever error Unicorn made of it
            return Stop.FAULT
        self.error = self._library.uc_strerror(ctypes.c_int(status)).decode()
        return Stop.FAILED

    def stop_at(self, addresses: Sequence[int]) -> None:
        """End runs before instructions at these addresses and no others, in code that is translated from now on."""
        self._ql.uc.ctl_set_exits(addresses)

    def stop(self) -> None:
        """End the run at the next block of code; from callbacks and from other threads."""
        self.blocks.request()

    def pc(self) -> int:
        """The running CPU's PC."""
        self._read_pc()
        return self._pc_value.value

    def set_pc(self, address: int) -> None:
        """Set the running CPU's PC."""
        self.frame.regs[self._pc] = address
        self._write_pc()

    def _write_pc_only(self, address: int) -> None:
        """Set the PC, and leave no copy of it in memory, where `find_live_pc` would take it for the CPU's own."""
        self._quick.uc_reg_write(self._handle, ctypes.c_int(self._pc_number), word := (ctypes.c_uint64 * 1)(address))
        word[0] = 0

    @property
    def fault(self) -> tuple[int, Access]:
        """After `Stop.FAULT`: the address that could not be translated, and the kind of access."""
        assert self._fault is not None
        page, access = self._fault
        return self._exact_address(page), access

    def _find_fault_address(self) -> None:
        saved = self.states.save()
        self.set_pc(CANARY)
        self.run()
        self._exact_address = exact_address(self._handle.value or 0)
        self.states.restore(saved)

    # -- CPU state ----------------------------------------------------------------------------------------------------

    def _register_number(self, name: str) -> int:
        found: int = getattr(self._constants, f"UC_{self._facts.unicorn.upper()}_REG_{name.upper()}")
        return found

    @property
    def live(self) -> RegisterFile:
        """The running CPU's registers."""
        return self._live

    def _check(self, status: int) -> None:
        if status != const.UC_ERR_OK:
            raise ValueError(f"unicorn: {self._library.uc_strerror(ctypes.c_int(status)).decode()}")
