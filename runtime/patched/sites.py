"""A manifest, and where its image was loaded -> armed breakpoints in memory, and the site of each hit.

Sites are kept as columns, since a kernel may have millions. A site becomes an object when it is hit for the first time.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.hits.actions import called_at, delivery_of, reads_of
from kinst.runtime.hits.deciding import ArgumentRegisters, Displaced, ProbeActions, SiteDeliveries
from kinst.runtime.patched.call_blocks import Block, no_blocks
from kinst.runtime.patched.scattered import scatter
from kinst.runtime.patched.spare_trampolines import SpareTrampolines, whole_slot
from kinst.runtime.patched.static_gates import StaticMarks, gated
from kinst.runtime.patched.trampoline_ends import end_with_jumps, target_of
from kinst.runtime.trap.arch.registry import jump, moved_trampoline
from kinst.runtime.trap.delivery import DISPATCHED, Delivery, Way
from kinst.runtime.trap.trap import Enabling, Firing, Site, TrapPath, registers_unknown
from kinst.targets.instruction import Flow, Verdict
from kinst.targets.manifest.packed import Manifest, Method, ProbeKind

if TYPE_CHECKING:
    from kinst.runtime.engine.qiling_machine import QilingMachine
    from kinst.runtime.machine.address_space import AddressSpace
    from kinst.runtime.machine.loading.loaded import Loaded
    from kinst.runtime.patched.guest_ram import GuestRam
    from kinst.runtime.trap.arch.emulator import Emulation, Emulator
    from kinst.targets.arch.facts import ArchFacts
    from kinst.targets.static_probes import StaticProbe

Action = Callable[[Firing], None]
Argument = Callable[[Firing, int], int]
ArgumentAt = Callable[[int, int], Argument]  # (row of the probe, link address of the site) -> arg0, arg1, ...

# A site of these kinds is a return only if control leaves the function: a conditional branch or a computed jump out of
# the function is a tail call, one inside the function a loop or a switch.
_CONDITIONAL = (Flow.BRANCH, Flow.INDIRECT_JUMP)
_CALLS = (Flow.CALL, Flow.INDIRECT_CALL)
_LONGEST = 16  # the most bytes of a site
_FEW = 16  # sites
_IN_MODULE = Delivery(Way.DISPATCH, "it is in a module that the guest loads")


@dataclass(frozen=True, slots=True)
class Patched:
    """A patched image in memory, and the bytes of its trampolines."""

    manifest: Manifest
    loaded: "Loaded"
    trampolines: bytes


@dataclass(frozen=True, slots=True)
class SiteHooks:
    """What a table of sites needs of the machine."""

    # Makes the enabling that stands for these at a tail call out of a function of some size: they fire when what is
    # called returns.
    returning: Callable[[Sequence[Enabling], int], Enabling]
    at_block: Callable[[Block, Enabling], Enabling] = no_blocks  # the enabling of a tracepoint: see `CallBlocks`
    spare: SpareTrampolines | None = None  # trampolines that the file does not have; None: none are needed
    begins: Callable[[NDArray[np.bool_]], NDArray[np.bool_]] | None = None  # see `SiteDeliveries`


class SiteTable:
    """All sites of an image: which are armed, and what happens at each."""

    def __init__(
        self,
        patched: Patched,
        arch: "ArchFacts",
        emulator: "Emulator",
        hooks: SiteHooks,
        *,
        is_module: bool = False,
    ) -> None:
        """Nothing is armed until `arm`.

        Args:
            patched: the image in memory.
            arch: its machine.
            emulator: computes the effects of its instructions.
            hooks: what it needs of the machine.
            is_module: it is a module that the guest loads, where hits are dispatched.
        """
        self.is_module = is_module
        self.is_named = is_module  # whether descriptions mean it by its own name alone, and never as `kernel`
        self.manifest = patched.manifest
        self._patched = patched
        self.arch = arch
        self._emulator, self._hooks = emulator, hooks
        self.armed_bytes = arch.engine.armed
        self._addresses: NDArray[np.uint64] = np.ascontiguousarray(self.manifest.sites["address"])
        self._in_order = self._addresses.data  # the same as numbers of Python, in which bisect is several times as fast
        self._first_enabling = np.searchsorted(self.manifest.enablings["site"], np.arange(len(self._addresses) + 1))
        self._actions: list[Action] = [lambda _firing: None]
        self._action_of = np.zeros(len(self.manifest.probes), np.uint32)  # index in `_actions`; 0: disabled
        self._planted: dict[int, tuple[Action, ...]] = {}  # row of a probe -> providers that are also called there
        self.arguments: dict[int, ArgumentAt] = {}  # by ProbeKind
        self.argument_registers: dict[int, ArgumentRegisters] = {}  # by ProbeKind
        self.identifiers = self.manifest.identifiers  # identifiers of the probes, by row
        self._order = np.argsort(self.identifiers, kind="stable")
        self.is_deferred = self.manifest.is_deferred  # sites whose breakpoints are not in memory, by now
        self.is_patched = ~self.is_deferred  # sites that memory may have a breakpoint at
        self._is_overwritten = np.zeros(len(self._addresses), np.bool_)
        self.is_wanted = np.ones(len(self._addresses), np.bool_)  # sites with an enabled probe
        self.at_blocks = np.zeros(len(self._addresses), np.bool_)  # sites that need no breakpoint: see `BlockSites`
        self.is_armed = self.is_patched.copy()  # sites at which memory has a breakpoint: at first that of the file
        self.static_marks = StaticMarks(patched.loaded)
        self.is_stale = True  # memory is not yet armed for what is enabled
        self._deliveries: SiteDeliveries | None = None  # None: another decision is due
        self._fill: Callable[[int, bytes], None] | None = None  # writes a trampoline; None: they are not in memory
        self._distance = 0  # of the trampolines from their link addresses plus the bias

    def rows_of(self, identifiers: NDArray[np.intp]) -> NDArray[np.intp]:
        """The rows of those identifiers that are probes of this image."""
        return self._order[np.searchsorted(self.identifiers, identifiers, sorter=self._order)]

    # -- enabling -----------------------------------------------------------------------------------------------------

    def enable(self, rows: NDArray[np.intp], action: Action) -> None:
        """Enable probes (rows of the manifest) with `action`. It takes effect with `arm`."""
        self._actions.append(action)
        self._action_of[rows] = len(self._actions) - 1
        self._change()

    def disable(self, rows: NDArray[np.intp]) -> None:
        """Disable probes. It takes effect with `arm`."""
        self._action_of[rows] = 0
        self._change()

    def plant(self, rows: Sequence[int], called: Action) -> None:
        """Call a provider at the sites of probes, whether or not these are enabled. It takes effect with `arm`."""
        for row in rows:
            self._planted[row] = (*self._planted.get(row, ()), called)
        self._change()

    def unplant(self, rows: Sequence[int], called: Action) -> None:
        """Stop calling it at these sites. It takes effect with `arm`."""
        for row in rows:
            left = tuple(one for one in self._planted.pop(row, ()) if one is not called)
            if left:
                self._planted[row] = left
        self._change()

    def leave_out(self, overwritten: NDArray[np.bool_], gone: NDArray[np.bool_]) -> None:
        """Never write to sites that are overwritten where the image was loaded; those gone are in no copy either."""
        self._is_overwritten = overwritten
        self.is_patched &= ~gone

    def _change(self) -> None:
        self.is_stale = True
        self.decide_again()

    def decide_again(self) -> None:
        """Decide deliveries again, since what they depend on has changed. It takes effect with `arm`."""
        self._deliveries = None

    @property
    def _probe_actions(self) -> ProbeActions:
        deliveries = [_IN_MODULE if self.is_module else delivery_of(action) for action in self._actions]
        reads = [reads_of(action) for action in self._actions]
        return ProbeActions(deliveries, reads, self._action_of, tuple(self._planted), self.argument_registers)

    @property
    def deliveries(self) -> SiteDeliveries:
        """How the hits of each site are delivered, for what is enabled now."""
        if self._deliveries is None:
            displaced = Displaced(self.arch, self.manifest.method, reaches=self._reaches())
            self._deliveries = SiteDeliveries(self.manifest, self._probe_actions, displaced, self._hooks.begins)
        return self._deliveries

    def _reaches(self) -> bool:
        """Whether a jump reaches from the trampolines to the code."""
        make = jump(self.arch)
        if make is None or not len(self._in_order):
            return False
        return make(self.manifest.trampolines[0] + self._distance, self._in_order[0]) is not None

    @property
    def is_recorded(self) -> NDArray[np.bool_]:
        """For each site, whether something that is enabled there does more than to count."""
        return self._with_probes(self.active & (self._probe_actions.ways() > Way.RECORD))

    @property
    def active(self) -> NDArray[np.bool_]:
        """For each row of a probe, whether anything happens there."""
        return self._probe_actions.is_active()

    @property
    def active_sites(self) -> NDArray[np.bool_]:
        """For each site, whether anything happens there."""
        return self._with_probes(self.active)

    def _with_probes(self, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        found, is_chosen = np.zeros(len(self._addresses), np.bool_), rows[self.manifest.enablings["probe"]]
        found[self.manifest.enablings["site"][is_chosen]] = True
        return found

    def arm(self, memory: "GuestRam", trap: TrapPath) -> None:
        """Write breakpoints where a probe is enabled, and the original bytes at all other sites: kinst_patch_tracepoint
        for all sites at once. This may be done while the guest runs, between two of its instructions."""
        self.is_wanted = self.active_sites
        self.at_blocks = self.deliveries.is_at_block.copy()
        self.is_armed = self.is_wanted & self.is_patched & ~self.at_blocks
        for size, every in self._by_size():
            rows = every[~self._is_overwritten[every]]
            addresses = self._addresses[rows] + np.uint64(self._patched.loaded.bias % (1 << 64))
            content = self._content(rows, size)
            for virtual, physical, length in self._patched.loaded.segments:
                with memory.code(physical, length) as code:
                    scatter(code, virtual, addresses, content)
        self.static_marks.set(memory, self._enabled_static())
        # The hits of sites are made again for what is enabled now; the ends of trampolines stay: a CPU may be in one.
        trap.remove([address for address in trap.hits if address not in trap.trampolines])
        self.is_stale = False

    def _enabled_static(self) -> list[tuple[int, "StaticProbe"]]:
        """The enabled static probes, with their identifiers."""
        probes = self.manifest.probes
        rows = np.flatnonzero((self._action_of != 0) & (probes["kind"] == ProbeKind.SDT))
        return [(int(self.identifiers[row]), self.manifest.static[int(probes["offset"][row])]) for row in rows.tolist()]

    def show_armed(self, address: int, text: NDArray[np.uint8]) -> None:
        """Arm `text`, a copy of the image's bytes from a link address on, as memory is armed."""
        for size, rows in self._by_size():
            scatter(text, address, self._addresses[rows], self._content(rows, size))

    def _by_size(self) -> Iterator[tuple[int, NDArray[np.intp]]]:
        """The rows of the sites that are patched in the file, by the size of their instructions."""
        sizes = self.manifest.sites["size"]
        for size in np.unique(sizes).tolist():
            yield size, np.flatnonzero((sizes == size) & self.is_patched)

    def _content(self, rows: NDArray[np.intp], size: int) -> NDArray[np.uint8]:
        """(n, width) bytes that memory must have at sites of one size; width is that of the breakpoint, on amd64
        one."""
        armed = np.frombuffer(self.armed_bytes[size], np.uint8)
        content = self.manifest.sites["original"][rows].view(np.uint8).reshape(-1, 16)[:, : len(armed)].copy()
        content[self.is_armed[rows]] = armed
        return content

    def map_trampolines(self, space: "AddressSpace", trap: TrapPath, engine: "QilingMachine") -> None:
        """Map the trampolines, with the return breakpoints that Unicorn traps fastest. Those that jump back to link
        addresses are of no use if the image was moved."""
        address, size = self.manifest.trampolines
        if not size or (self.arch.return_breakpoint is None and self._patched.loaded.bias):
            return
        code = self.slot_bytes(np.frombuffer(self._patched.trampolines, np.uint8).reshape(-1, self.arch.slot_size))
        start = address + self._patched.loaded.bias
        space.overlay(start, code.tobytes())
        end = max(start + size, trap.trampolines.stop)  # those of a module are below those of the image
        trap.reach_trampolines(range(start, end))
        engine.set_trampolines(start, len(trap.trampolines), self.arch.slot_size)

        def put(slot: int, content: bytes) -> None:
            space.fill_overlay(slot, content)
            engine.forget_code(slot, len(content))

        self.reach_trampolines(trap, space.fetch, put)

    def reach_trampolines(
        self, trap: TrapPath, fetch: Callable[[int, int], bytes], put: Callable[[int, bytes], None], distance: int = 0
    ) -> None:
        """Let the CPU execute in trampolines what is emulated otherwise, and jump back from there.

        Args:
            trap: the trap path, whose trampolines are in memory.
            fetch: reads code of trampolines: an address and a size.
            put: writes code of a trampoline, whose old code may have been translated.
            distance: how far the trampolines are from their link addresses plus the bias.
        """
        self._distance = distance

        def fill(slot: int, content: bytes) -> None:
            if fetch(slot, len(content)) != content:  # else its translation would be lost for nothing
                put(slot, content)

        self._fill = fill
        if trap.counted is not None:
            end_with_jumps(trap.counted, self.arch, self._last, fetch, fill)

    @property
    def _last(self) -> bytes:
        """The breakpoint that ends a trampoline."""
        return self.armed_bytes[max(self.armed_bytes)]

    def slot_bytes(self, slots: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """(n, slot_size) bytes of trampolines in the file -> the bytes that are executed."""
        slots = slots.copy()
        start = self.arch.return_breakpoint
        if start is not None:
            armed = np.frombuffer(self._last, np.uint8)
            slots[:, start : start + len(armed)] = armed
        return slots

    # -- hits ---------------------------------------------------------------------------------------------------------

    def row_at(self, address: int) -> int | None:
        """The row of the site at a link address; None if there is none."""
        if address < 0 or address >> 64:
            return None
        row = bisect_left(self._in_order, address)
        return row if row < len(self._in_order) and self._in_order[row] == address else None

    def site(
        self,
        row: int,
        moved: bytes | None = None,
        method: str | None = None,
        *,
        record: np.void | None = None,
        target: int | None = None,
    ) -> Site:
        """One site with its enabled probes.

        Args:
            row: the row of the site.
            moved: its instruction in a copy, which relocations may have changed.
            method: a `Method` in place of the manifest's.
            record: what the guest wrote there (SITE), for a deferred site.
            target: the link address that it jumps to, for a deferred site.
        """
        written, record = record, self.manifest.sites[row] if record is None else record
        bias = self._patched.loaded.bias
        size = int(record["size"])
        emulation, out_of_line = None, None
        is_asked_for = (method or self.manifest.method) == Method.EMULATE and record["kind"] in self.arch.emulable
        if int(record["verdict"]) == Verdict.EMULATE or is_asked_for:
            instruction = record["original"].tobytes()[:size] if moved is None else moved
            emulation = self._emulator.emulation(int(record["kind"]), instruction)
            out_of_line = self._out_of_line(record, instruction, emulation)
        rows, kinds = self._probes_at(row), self.manifest.probes["kind"]
        static = [probe for probe in rows if int(kinds[probe]) == ProbeKind.SDT]
        plain = [one for one in rows if one not in static and (target is None or self._stands_for(one, record, target))]
        enablings = [one for probe in plain for one in self._enablings(record, probe)]
        fired, instead = self._static(record, static)
        enablings += fired
        address, trampoline = int(record["address"]) + bias, int(record["trampoline"]) + bias + self._distance
        # A method is asked for where there can be no trampoline.
        delivery = self.deliveries.of(row, written) if method is None else DISPATCHED
        site = Site(address, size, trampoline, instead or emulation, tuple(enablings), delivery=delivery)
        return site if instead or out_of_line is None else replace(site, out_of_line=out_of_line)

    def enablings(self, row: int) -> tuple[Enabling, ...]:
        """The enablings of one site: all that is asked of it when the CPU has its hits behind it."""
        rows, kinds = self._probes_at(row), self.manifest.probes["kind"]
        if any(int(kinds[probe]) == ProbeKind.SDT for probe in rows):
            return self.site(row).enablings
        return tuple(one for probe in rows for one in self._enablings(self.manifest.sites[row], probe))

    def address(self, row: int) -> int:
        """Where one site is in memory."""
        return self._in_order[row] + self._patched.loaded.bias

    def _probes_at(self, row: int) -> list[int]:
        """The rows of the probes of one site."""
        first, end = self._first_enabling[row : row + 2].tolist()
        found: list[int] = self.manifest.enablings["probe"][first:end].tolist()
        return found

    def _out_of_line(
        self, record: np.void, instruction: bytes, emulation: "Emulation"
    ) -> Callable[[int], int | None] | None:
        """`Site.out_of_line` of an instruction that is emulated."""
        kind, fill, is_call = int(record["kind"]), self._fill, record["flow"] in _CALLS
        if fill is None:
            return None
        if kind in self.arch.control_only and not is_call:
            return lambda address: target_of(self.arch, emulation, address)
        if kind in self.arch.out_of_line:
            return None if self._hooks.spare is None else lambda address: self.spare_slot(kind, instruction, address)
        make = self._slot_maker(kind, instruction, is_call=is_call)
        if make is None:
            return None
        home, slot = (int(record[name]) + self._patched.loaded.bias for name in ("address", "trampoline"))
        slot += self._distance

        def to_trampoline(address: int) -> int | None:
            # The slot of the file is for the site as it was linked: it can hold the end of one address only.
            own = None if address == home else self.spare_slot(kind, instruction, address)
            if own is not None:
                return own
            code = make(address, slot)
            if code is not None:
                fill(slot, code)
            return None if code is None else slot

        return to_trampoline

    def spare_slot(self, kind: int, instruction: bytes, address: int) -> int | None:
        """A trampoline that the file does not have, for an instruction at an address; None: there is none."""
        spare = self._hooks.spare
        return None if spare is None else spare.slot(kind, instruction, address)

    def _slot_maker(self, kind: int, instruction: bytes, *, is_call: bool) -> Callable[[int, int], bytes | None] | None:
        """A function that makes a trampoline for an instruction that is emulated otherwise, from the address of the
        instruction and that of the slot. None: there can be none."""
        if kind not in self.arch.movable:
            return None
        make, end = moved_trampoline(self.arch), self.arch.return_breakpoint
        if make is not None:
            return lambda address, slot: make(kind, instruction, address, slot)
        if is_call or end is None:
            return None
        code = whole_slot(self.arch, instruction, self._last)
        return lambda _address, _slot: code

    def _stands_for(self, row: int, record: np.void, target: int) -> bool:
        """Whether a probe still applies to what the guest wrote at its site: a return may have become a nop."""
        probe, flow = self.manifest.probes[row], record["flow"]
        if probe["kind"] != ProbeKind.FBT_RETURN or flow == Flow.RETURN:
            return True
        function = self.manifest.functions[probe["function"]]
        if flow in (Flow.JUMP, Flow.BRANCH) and 0 <= target - int(function["address"]) < int(function["size"]):
            return False
        return flow == Flow.JUMP or (flow in _CONDITIONAL and record["verdict"] == Verdict.EMULATE)

    def _static(self, record: np.void, rows: list[int]) -> tuple[tuple[Enabling, ...], "Emulation | None"]:
        """The enablings of the static probes at a site, and what is emulated in place of its instruction."""
        static = self.manifest.static
        pairs = [
            (static[int(self.manifest.probes["offset"][row])], enabling)
            for row in rows
            for enabling in self._enablings(record, row)
        ]
        return gated(self.arch, int(record["address"]), int(record["size"]), pairs, self._hooks.at_block)

    def _enablings(self, record: np.void, row: int) -> list[Enabling]:
        """The enablings of one of a site's probes: the probe's action, and the calls that providers planted."""
        actions = [(0, called) for called in self._planted.get(row, ())]
        if self._action_of[row]:
            actions.insert(0, (int(self.identifiers[row]), called_at(self._actions[self._action_of[row]])))
        if not actions:
            return []
        # Numbers of Python: to compare one of numpy's with an Enum takes microseconds, and a kernel has 40,000 probes.
        probe, function = self.manifest.probes[row], self.manifest.functions[self.manifest.probes["function"][row]]
        kind, flow = int(probe["kind"]), int(record["flow"])
        start, size = int(function["address"]), int(function["size"])
        address, bias = int(record["address"]), self._patched.loaded.bias
        is_conditional = kind == ProbeKind.FBT_RETURN and flow in _CONDITIONAL
        leaving = (start + bias, start + size + bias) if is_conditional else None
        argument = self.arguments[kind](row, address)
        registers = self.argument_registers.get(kind, registers_unknown)
        found = [
            Enabling(identifier, action, argument, address - start, leaving, registers=registers)
            for identifier, action in actions
        ]
        is_tail_call = kind == ProbeKind.FBT_RETURN and flow != Flow.RETURN
        return [self._hooks.returning(found, size)] if is_tail_call else found

    def pristine(self, address: int, content: bytes) -> bytes:
        """Bytes read at a link address, with the original ones at armed sites."""
        if not content or address < _LONGEST or address >> 64:
            return content
        first = bisect_left(self._in_order, address - _LONGEST)
        end = bisect_left(self._in_order, address + len(content), first)
        if end - first <= _FEW:  # nearly always one instruction, and numpy takes longer to start than this does
            for row in range(first, end):
                content = self._with_original(row, address, content)
            return content
        text = np.frombuffer(content, np.uint8).copy()
        self.show_pristine(address, text)
        return text.tobytes()

    def _with_original(self, row: int, address: int, content: bytes) -> bytes:
        """The content with one site's original bytes, if it is armed and the guest has not overwritten it."""
        armed = self.armed_bytes[int(self.manifest.sites["size"][row])] if self.is_armed[row] else b""
        start = self._in_order[row] - address
        low, high = max(start, 0), min(start + len(armed), len(content))
        if low >= high or content[low:high] != armed[low - start : high - start]:
            return content
        original: bytes = self.manifest.sites["original"][row].tobytes()
        return content[:low] + original[low - start : high - start] + content[high:]

    def show_pristine(self, address: int, text: NDArray[np.uint8]) -> None:
        """Put the original bytes into `text`, a copy of memory from a link address on, at sites that are armed and that
        the guest has not overwritten since."""
        rows = self.between(address, len(text))
        rows = rows[self.is_armed[rows]]
        sizes = self.manifest.sites["size"][rows]
        for size in np.unique(sizes).tolist():
            armed = np.frombuffer(self.armed_bytes[size], np.uint8)
            some = rows[sizes == size]
            places = (self._addresses[some] - np.uint64(address)).view(np.int64)[:, None] + np.arange(len(armed))
            inside = (places >= 0) & (places < len(text))
            seen = np.where(inside, text[np.where(inside, places, 0)], armed)  # bytes outside of `text` count as armed
            inside &= (seen == armed).all(axis=1)[:, None]
            original = self.manifest.sites["original"][some].view(np.uint8).reshape(-1, 16)[:, : len(armed)]
            text[places[inside]] = original[inside]

    def between(self, address: int, size: int) -> NDArray[np.intp]:
        """The rows of the sites that may have a byte in a range."""
        bounds = max(address - _LONGEST, 0), min(address + size, 2**64 - 1)
        return np.arange(*np.searchsorted(self._addresses, np.array(bounds, np.uint64)))
