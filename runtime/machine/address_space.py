"""What each virtual address refers to at the moment: the machine's answer to a TLB miss, and the trap path's accesses.

In this order: a fetch from the trampolines' pages reaches them in every address space; `--call` maps link addresses to
where the image was loaded; otherwise the guest's MMU decides (`kinst.runtime.paging`). Data accesses to the
trampolines' addresses go to the guest's own memory, so trampolines may be at addresses where the guest has RAM.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from kinst.runtime.engine.qiling_machine import QilingMachine
from kinst.runtime.machine.bus import Bus
from kinst.runtime.machine.held_pages import HELD, AsKernel, HeldPages, PartlyCleared
from kinst.runtime.machine.memory import PhysicalMemory
from kinst.runtime.machine.physical.frames import MIRROR, MIRROR_SIZE, OPEN_BUS, OPEN_BUS_CODE, PAGE, TRAMPOLINE_FRAMES
from kinst.runtime.machine.physical.stage import Stage
from kinst.runtime.machine.physical.unmodelled import Unmodelled
from kinst.runtime.machine.watching.mirrored_pages import MemoryWatcher, MirroredPages
from kinst.runtime.machine.watching.open_pages import OpenPages
from kinst.runtime.machine.watching.page_watchers import CodeWatcher, StoreGuard
from kinst.runtime.machine.watching.watched_pages import WatchedPages
from kinst.runtime.paging.walker import Access, PageFault, Permission, Registers, StorePhysical, Translation, Walker
from kinst.targets.errors import GuestError, MachineError

# Plain numbers: there are thousands of misses a second, and enum flags are slow.
_EXECUTE, _READ, _WRITE = int(Permission.EXECUTE), int(Permission.READ), int(Permission.WRITE)
_READ_WRITE, _PAGE_SHIFT, _MOST_BLOCKS = _READ | _WRITE, 12, 1 << 16
_Answer = TypeVar("_Answer")
NothingThere = Callable[[int, Access], PageFault | None]


def _forget(_physical: int, _value: int) -> None:
    """Set no accessed bit: the tracer's reads must not show in the guest's tables."""


class AddressSpace:
    """Translation for the CPU that runs."""

    def __init__(
        self,
        engine: QilingMachine,
        memory: PhysicalMemory,
        bus: Bus,
        walker: Walker,
        nothing_there: NothingThere,
        code_found: Callable[[int], None],
        unmodelled: Unmodelled | None = None,
    ) -> None:
        """`bus` has the devices, `unmodelled` pages for some addresses of none. `nothing_there` gives the fault, if
        any, of an access that nothing answers; `code_found` is called with a physical page before its code runs."""
        self._engine, self._memory, self._walker = engine, memory, walker
        self._registers: Registers = engine.live
        self._to_access = tuple(engine.translator(access) for access in Access)
        self._to_read, self._to_write = self._to_access[Access.READ], self._to_access[Access.WRITE]
        self._load, self._store = memory.load, memory.store
        self._bus = bus
        self._overlay: dict[int, int] = {}  # virtual page -> physical page
        self._aliases: Sequence[tuple[int, int, int]] = ()
        self._written: set[int] = set()  # physical pages that were granted for stores, and may have such TLB entries
        self._tracer_registers = PartlyCleared(self._registers, walker.tracer_bits)
        self._has_started = False
        self._first_tables: int | None = None
        self._is_observing = False
        self._observed: int | None = None
        self.watched = WatchedPages(self._note_code)
        self._guard: StoreGuard | None = None
        self._guarded: set[int] = set()  # physical pages that were not stored to so far
        self._exact: int | None = None  # the address to which the trap path or a model stores, if pages are guarded
        self._is_guarded_store = False  # the running instruction's store was to one of them
        self.device_pages: set[int] = set()
        self.open_pages = OpenPages(self.forget)
        self.mirror: MirroredPages | None = None
        self._real: Callable[[int], int] = int  # the RAM's address for the engine's; a mirror has others
        self.nothing_at: tuple[int, int] | None = None  # the last access that faulted since nothing is there
        self.is_asking = False  # whether the trap path or a model accesses a device
        self._has_only_aliases = False
        self._on_writable: Callable[[int], None] | None = None
        self.table_pages: set[int] = set()  # physical pages with entries that walks have read, from `on_writable` on
        self._nothing_there, self._code_found = nothing_there, code_found
        self._unmodelled = unmodelled
        self._on_executable: list[Callable[[int, int, Access], None]] = []
        self.fault: PageFault | None = None
        self._blocks: dict[int, set[int]] = {}  # log2 of the size -> numbers of blocks that may be in the TLB
        self._entries: list[int] = []  # physical addresses of the table entries that the last walk read
        engine.on_tlb_fill(self._fill)
        self._walks = engine.keep_walks(walker.context)
        self.kernel_registers = AsKernel(self._registers, walker.kernel_bits, self._walks.raised)
        self.held = HeldPages(engine, self._walks, self._registers)
        engine.on_tlb_invalidation(self._invalidated)

    def regime(self) -> tuple[int, ...]:
        """The values that the running CPU's translations depend on; empty if that is not known."""
        return tuple(self._registers.get(name) for name in self._walker.regime)

    def context(self) -> tuple[int, ...]:
        """What they depend on, where one CPU's are not another's."""
        return self.regime() or tuple(self._registers.get(name) & bits for name, bits in self._walker.context.items())

    def start(self) -> None:
        """Note that the first CPU, whose registers are set, is about to run."""
        self._has_started, self._first_tables = True, self._walker.tables(self._registers)

    @property
    def started(self) -> tuple[bool, int | None]:
        """Whether `start` was called, and the tables of that moment."""
        return self._has_started, self._first_tables

    def continue_from(self, started: tuple[bool, int | None]) -> None:
        """Note that the guest's state is another's, whose `started` this is."""
        self._has_started, self._first_tables = started
        self.forget()
        self._memory.code_changed()

    @property
    def is_physical(self) -> bool:
        """Whether the running CPU does not translate addresses."""
        return self._walker.tables(self._registers) is None

    def stage(self) -> Stage:
        """The stage of the running CPU."""
        if not self._has_started:
            return Stage.LOADED
        tables = self._walker.tables(self._registers)
        return Stage.PHYSICAL if tables is None or tables == self._first_tables else Stage.TRANSLATED

    def overlay(self, address: int, code: bytes) -> None:
        """Map trampolines at a virtual address, for fetches, whatever the guest maps there."""
        size = -(-len(code) // 4096) * 4096
        frames = TRAMPOLINE_FRAMES + (len(self._overlay) << 12)
        self._memory.add_ram(frames, size)
        self._memory.write(frames, code)
        for page in range(size >> 12):
            self._overlay[(address >> 12) + page] = (frames >> 12) + page
        self.forget()

    def fill_overlay(self, address: int, code: bytes) -> None:
        """Write a trampoline, which is within a page and was never executed, into what `overlay` put there."""
        self._memory.write(self._overlay[address >> 12] << 12 | address & 0xFFF, code)

    def watch(self, watcher: CodeWatcher) -> None:
        """Let `watcher` decide what is executed in its pages. Called again when these are others."""
        self.watched.watch(watcher)
        self.forget()

    def guard(self, pages: Iterable[int], guard: StoreGuard) -> None:
        """Notify `guard` of the next store to each of some physical pages. This happens once for a page, and costs
        nothing before and after."""
        if self._guard is None:
            self._to_write = self._noting(self._to_write)
            self._to_access = tuple(
                self._to_write if access is Access.WRITE else self._to_access[access] for access in Access
            )
        self._guard, self._guarded = guard, set(pages)
        self.forget()

    def _noting(self, to_write: Callable[[int], int | None]) -> Callable[[int], int | None]:
        """The same function, which notes the address that it is called for: the TLB callback knows only the page."""

        def translate(address: int) -> int | None:
            self._exact = address
            try:
                return to_write(address)
            finally:
                self._exact = None

        return translate

    def took_guarded_store(self) -> bool:
        """Whether the engine's fault was only made to notify the guard, which is done here: the store can be
        repeated."""
        is_guarded, self._is_guarded_store = self._is_guarded_store, False
        if is_guarded and self._guard is not None:
            self._guard.stored(self._engine.pc(), self._engine.fault[0])
        return is_guarded

    def alias(self, ranges: Sequence[tuple[int, int, int]], *, is_all: bool = False) -> None:
        """Map (virtual, physical, size) ranges without the guest's help, the first one that has an address; at those
        with a negative physical address each access faults. With `is_all` nothing else is mapped."""
        self._aliases, self._has_only_aliases = ranges, is_all
        self.forget()

    def on_writable(self, writable: Callable[[int], None]) -> None:
        """Call `writable` with a physical page before the guest can store to it, and note `table_pages`."""
        self._on_writable = writable
        self.forget()

    def on_executable(self, executable: Callable[[int, int, Access], None]) -> None:
        """Call `executable` with the virtual and the physical address of a page, or of a part of it, that has become
        executable, and with the access that it is for."""
        self._on_executable.append(executable)

    def ask_again(self) -> None:
        """Report all pages to `on_executable` again when they are executed."""
        self.forget()
        self._memory.code_changed()  # else translated code jumps to translated code, and no fetch misses the TLB

    def forget(self) -> None:
        """Drop all translations, since something other than the guest has changed them."""
        self._blocks.clear()
        self._walks.forget()
        self._engine.flush_tlb()

    def _fill(self, address: int, access: Access) -> tuple[int, int] | None:
        if self._is_observing:
            self._observed = self._translate_unseen(address, self._tracer_registers)
            return None
        if self.held.is_active and access is not Access.FETCH and self._is_held(address):
            return None
        frame = self._overlay.get(address >> 12)
        if frame is not None and self._is_for_trampoline(access):
            return self._grant_trampoline(frame << 12 | address & 0xFFF, address, access)
        registers = self.held.registers_for(address)
        try:
            translation = self._translate(address, access, registers, lambda entry, value: self._store(entry, 8, value))
        except PageFault as fault:
            self.fault = fault
            return None
        if translation.shift > _PAGE_SHIFT:
            self._remember_block(address, translation.shift)
        granted = self._grant(address, translation, access)
        if granted is not None:
            self._report(granted, address, translation, access)
            self._keep(translation.physical >> _PAGE_SHIFT, granted, registers, access)
        return granted

    def _grant_trampoline(self, physical: int, address: int, access: Access) -> tuple[int, int]:
        """A TLB entry of trampolines. Where the guest has memory, its loads must reach that: ours is only executed."""
        is_shared = self._memory.find(address) is not None
        permissions = _EXECUTE if access is Access.FETCH else _READ
        answer = physical, permissions if is_shared else _READ | _EXECUTE
        if access is Access.FETCH:
            self._walks.keep(*answer, ())
        return answer

    def _is_held(self, address: int) -> bool:
        """Whether an access stops. That of a displaced instruction does not: its PC is not the one to report."""
        if self._engine.pc() >> 12 in self._overlay or not self.held.has(address):
            return False
        self.fault = PageFault(address, Access.READ, HELD)
        return True

    def _report(self, granted: tuple[int, int], address: int, translation: Translation, access: Access) -> None:
        """Report a page that can be stored to, or be executed by more than Unicorn; see `_grant_memory`."""
        if self._on_writable is not None:
            self.table_pages.update(entry >> _PAGE_SHIFT for entry in self._entries)
            if granted[1] & _WRITE:
                self._on_writable(granted[0] >> _PAGE_SHIFT)
        is_executable = granted[1] & _EXECUTE and (access is Access.FETCH or int(translation.permissions) & _EXECUTE)
        for executable in self._on_executable if is_executable else ():
            executable(address, translation.physical, access)

    def _keep(self, page: int, granted: tuple[int, int], registers: Registers, access: Access) -> None:
        """Let the engine repeat this answer, as long as a walk would give the same, without a call of the watcher."""
        if not self._walker.has_context(registers):
            return
        words = self._memory.origins(page, self._entries)
        if words is not None:
            self._walks.keep(*granted, [*words, *self.watched.words(page, access)])

    def _remember_block(self, address: int, shift: int) -> None:
        """Note a large mapping that may be in the TLB, now or later, since `_walks` gives it again."""
        if len(self._blocks.get(shift, ())) >= _MOST_BLOCKS:
            self.forget()
        self._blocks.setdefault(shift, set()).add(address >> shift)

    def _invalidated(self, address: int) -> None:
        """Drop a large mapping, which the guest may invalidate by any address in it. Unicorn drops only one page."""
        if any(address >> shift in blocks for shift, blocks in self._blocks.items()):
            self._engine.flush_tlb()

    def _is_for_trampoline(self, access: Access) -> bool:
        """Whether an access is meant for the trampolines: a fetch, or a read by one that jumps to an address in it."""
        if access is Access.READ:
            return self._engine.pc() >> 12 in self._overlay
        return access is Access.FETCH

    def _translate(self, address: int, access: Access, registers: Registers, store: StorePhysical) -> Translation:
        self._entries.clear()
        for virtual, physical, size in self._aliases:
            if virtual <= address < virtual + size:
                if physical < 0:
                    raise PageFault(address, access, 0)
                return Translation(address - virtual + physical, Permission.ALL)
        if self._has_only_aliases:
            raise PageFault(address, access, 0)
        return self._walker.translate(registers, self._load_entry, store, address, access)

    def _load_entry(self, physical: int) -> int:
        self._entries.append(physical)
        try:
            return self._load(physical, 8)
        except MachineError:
            raise GuestError(f"no RAM at {physical:#x}, where the guest has a translation table") from None

    def _grant(self, address: int, translation: Translation, access: Access) -> tuple[int, int] | None:
        """The physical address and permissions of the TLB entry; None: a fault."""
        granted = self._grant_memory(address, translation, access)
        if self.mirror is not None and granted is not None:
            granted = self.mirror.granted(address, granted, access)
        return self._grant_guarded(granted, access) if self._guarded and granted is not None else granted

    def _grant_memory(self, address: int, translation: Translation, access: Access) -> tuple[int, int] | None:
        """The same without regard to guarded pages. Unicorn 2.1.4 sends stores to executable pages down a slow path
        that notices changed code, so a page becomes executable only when it is fetched from. An alias that was already
        granted for writing would then change code unnoticed: it is dropped from the TLB."""
        physical, permissions = translation.physical, int(translation.permissions)
        page = physical >> 12
        if page in self.watched.pages:
            return self.watched.grant(address, physical, permissions, access)
        if self._memory.find(physical) is None:
            return self._grant_device(address, physical, access)
        if page in self._memory.code_pages:
            # A kernel changes its code by an alias that is writable and not executable. For Unicorn it is executable,
            # else only the first store would be noticed; no kernel is known to test that a fetch by it faults.
            return physical, permissions | (_EXECUTE if permissions & _WRITE else 0)
        if access is Access.FETCH:
            self._note_code(page)
            return physical, permissions
        if permissions & _WRITE:
            self._written.add(page)
        return physical, permissions & _READ_WRITE

    def _note_code(self, page: int) -> None:
        self._memory.add_code_page(page)
        self._code_found(page)
        if page in self._written:
            self._engine.flush_tlb()

    def _grant_guarded(self, granted: tuple[int, int], access: Access) -> tuple[int, int] | None:
        """A TLB entry of a guarded page, without stores up to the first. None: a fault, which gives exact addresses."""
        page = granted[0] >> _PAGE_SHIFT
        if page not in self._guarded or self._guard is None:
            return granted
        if access is not Access.WRITE:
            return granted[0], granted[1] & ~_WRITE
        self._guarded.discard(page)
        pc = self._engine.pc()
        if self._guard.is_own(pc, page):
            return granted
        if self._exact is not None:
            self._guard.stored(pc, self._exact)
            return granted
        self._is_guarded_store = True
        return None

    def _grant_device(self, address: int, physical: int, access: Access) -> tuple[int, int] | None:
        if physical >> 12 in self.device_pages and access is not Access.FETCH:
            return physical, _READ_WRITE
        known = None if self._unmodelled is None else self._unmodelled.frame(physical, access)
        if known is not None:
            return known, _READ_WRITE
        self.fault = self._nothing_there(address, access)
        if self.fault is not None:
            self.nothing_at = address, physical
            return None
        if access is Access.FETCH:
            return OPEN_BUS_CODE | physical & 0xFFF, _EXECUTE
        return self.open_pages.frame(physical), _READ_WRITE

    def mirrored(self) -> MirroredPages:
        """The pages whose accesses are told of, or answered. Between two runs, the first time."""
        if self.mirror is None:
            self.mirror = MirroredPages(self._memory, self.forget)
            self._real = self.mirror.real
            self._engine.map_window(MIRROR, MIRROR_SIZE, self.mirror, is_wide=True)
        return self.mirror

    def watch_memory(self, addresses: range, access: Access, watcher: MemoryWatcher) -> None:
        """Call `watcher` with each load, or store, of physical RAM. Between two runs. Raises MachineError."""
        self.mirrored().watch(addresses, access, watcher)

    def unwatch_memory(self, watcher: MemoryWatcher) -> None:
        """Call it no more."""
        if self.mirror is not None:
            self.mirror.unwatch(watcher)

    # -- accesses of the trap path ------------------------------------------------------------------------------------

    def load(self, address: int, size: int) -> int:
        """Read `size` bytes of virtual memory as the running CPU would; raises PageFault."""
        if (address & 4095) + size > 4096:
            first = 4096 - (address & 4095)
            return self.load(address, first) | self.load(address + first, size - first) << 8 * first
        physical = self._to_read(address)
        if physical is None:
            raise self.exact_fault(address, Access.READ)
        try:
            return self._load(physical, size)
        except MachineError:
            if self.mirror is not None and physical >= MIRROR:
                return self._ask(self.mirror.read, physical - MIRROR, size)
            if not self._is_on_bus(physical):
                raise
            parts = [(at, self._ask(self._bus.read, physical + at, min(size, 8))) for at in range(0, size, 8)]
            return sum(part << 8 * at for at, part in parts)

    def _ask(self, access: Callable[..., _Answer], *arguments: int) -> _Answer:
        self.is_asking = True
        try:
            return access(*arguments)
        finally:
            self.is_asking = False

    def _is_on_bus(self, physical: int) -> bool:
        """Whether a device or nothing (`OPEN_BUS`) is at the address, as for the guest's own instructions."""
        return physical >> 12 in self.device_pages or physical >= OPEN_BUS

    def observe(self, address: int) -> int | None:
        """The physical address that the tracer reads for a virtual one; None if nothing is mapped. The guest cannot
        notice: no translation is added to the TLB, and no accessed bit is set in the guest's tables."""
        self._is_observing, self._observed = True, None
        try:
            found = self._walks.ask(self._to_read, address)
        finally:
            self._is_observing = False
        if found is None:
            found = self._observed
        # The TLB callback knows only the page.
        return None if found is None else self._real(found & ~0xFFF | address & 0xFFF)

    def _translate_unseen(self, address: int, registers: Registers) -> int | None:
        try:
            return self._translate(address, Access.READ, registers, _forget).physical
        except (PageFault, MachineError):  # tables may lie where there is no RAM
            return None

    def observe_without(self, bits: Mapping[str, int], address: int) -> int | None:
        """As `observe`, but in the kernel, and as if some bits of registers were clear: those that select tables."""
        self.kernel_registers.clear(bits)
        return self._translate_unseen(address, self.kernel_registers)

    def observe_write(self, address: int) -> int | None:
        """The physical address for a store by a clause. It is subject to the guest's tables; None if the guest could
        not write there either."""
        physical = self._to_write(address)
        if physical is None:
            self.fault = None
        return None if physical is None else self._real(physical)

    def store(self, address: int, size: int, value: int) -> None:
        """Write `size` bytes of virtual memory as the running CPU would; raises PageFault."""
        if (address & 4095) + size > 4096:
            first = 4096 - (address & 4095)
            self.physical(address + first, Access.WRITE)  # fault before anything is written
            self.store(address, first, value)
            self.store(address + first, size - first, value >> 8 * first)
            return None
        physical = self._to_write(address)
        if physical is None:
            raise self.exact_fault(address, Access.WRITE)
        try:
            self._store(physical, size, value)
        except MachineError:
            if self.mirror is not None and physical >= MIRROR:
                return self._ask(self.mirror.write, physical - MIRROR, size, value)
            if not self._is_on_bus(physical):
                raise
            for at in range(0, size, 8):
                part = value >> 8 * at & (1 << 8 * min(size, 8)) - 1
                self._ask(self._bus.write, physical + at, min(size, 8), part)

    def fetch(self, address: int, size: int) -> bytes:
        """Read instruction bytes as the running CPU would; raises PageFault."""
        first = min(size, 4096 - (address & 4095))
        head = self._memory.read(self.real_physical(address), first)
        return head if first == size else head + self.fetch(address + first, size - first)

    def is_nothing_executed(self, address: int) -> bool:
        """Whether there is no memory at a virtual address, so that the running CPU fetches ones from the open bus."""
        physical = self._to_access[Access.FETCH](address)
        return physical is not None and physical & -PAGE == OPEN_BUS_CODE

    def real_physical(self, address: int) -> int:
        """The physical address of the guest's own code, even if something else is executed in its place; raises
        PageFault."""
        return self.watched.real(self.physical(address, Access.FETCH))

    def physical(self, address: int, access: Access) -> int:
        """The physical address for an access by the running CPU; raises PageFault."""
        found = self._to_access[access](address)
        if found is None:
            raise self.exact_fault(address, access)
        return found

    def exact_fault(self, address: int, access: Access) -> PageFault:
        """The last failed translation for the exact address: the TLB callback knows only its page."""
        fault, self.fault = self.fault, None
        return PageFault(address, access, fault.code if fault is not None else 0)
