"""What was prepared, and a command that starts QEMU -> the guest in it, traced.

Like `kinst.runtime.tracing.guests.building`, but the plan is made when all clauses have been checked: the fields of
records follow from what the clauses read.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from kinst.runtime.coverage.document import Granularity
from kinst.runtime.input.typist import Keyboard
from kinst.runtime.live.asked import check_asked
from kinst.runtime.live.command import QemuCommand, qemu_command
from kinst.runtime.live.copied.layout import KeptBack
from kinst.runtime.live.copied.starting import follower, is_followed, kept_from, tell, where
from kinst.runtime.live.covering import LiveCovering
from kinst.runtime.live.cpus import order_of_cpus
from kinst.runtime.live.fields import Fields
from kinst.runtime.live.guest import LiveGuest, Started
from kinst.runtime.live.hits import Hits
from kinst.runtime.live.keeping import Keeping
from kinst.runtime.live.loading import invocation
from kinst.runtime.live.panic import ConsolePanic
from kinst.runtime.live.qemu import Qemu
from kinst.runtime.live.ram import SharedRam
from kinst.runtime.live.room.driving import Driver
from kinst.runtime.live.room.layout import Layout, in_room
from kinst.runtime.live.room.reserving import may_move_itself
from kinst.runtime.live.room.rooms import Room, labelled, mapper_of, may_have_room, room_of
from kinst.runtime.live.silence import Silence, silence_reason
from kinst.runtime.live.standalone_image import StandaloneImage, standalone_image
from kinst.runtime.live.system_calls import SystemCalls
from kinst.runtime.live.timebase import timebase_of
from kinst.runtime.machine.configuration import ClockKind, End
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.patched.sites import SiteTable
from kinst.runtime.providers.host import ImageHost
from kinst.runtime.providers.provider import Provider
from kinst.runtime.readout.placement import Placement
from kinst.runtime.tracing.host.contract import NoGuest
from kinst.runtime.tracing.host.ending import Ending, Outcome, bare_ending
from kinst.runtime.tracing.host.limits import Limits
from kinst.runtime.tracing.host.surroundings import Admit, Surroundings
from kinst.runtime.tracing.images.plug_ins import PlugIns
from kinst.runtime.tracing.images.preparing import Prepared
from kinst.runtime.tracing.request import Request
from kinst.runtime.tracing.standalone.columns import CpuSource, own_number
from kinst.runtime.tracing.standalone.probes import KeptProbes, StandaloneProbes
from kinst.targets.c_types import ImageTypes
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.errors import KinstError, UsageError
from kinst.targets.manifest.packed import Manifest
from kinst.targets.standalone import CPU, TIME, Standalone
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class LiveTraced:
    """See `kinst.runtime.tracing.guests.built.Built`."""

    prepared: Prepared
    surroundings: Surroundings
    loaded: Loaded
    guest: LiveGuest
    covering: LiveCovering | None = None
    inlines: ClassVar = None
    has_guest: ClassVar = True
    answer: ClassVar = ""

    @property
    def keyboard(self) -> Keyboard:
        """What keys are typed to."""
        return Keyboard(self.guest.typist, self.guest.serial_line, self.guest.go_on)

    @property
    def exit_code(self) -> int:
        """The guest's exit status when it powered off."""
        return self.guest.exit_code

    def go(self, limits: Limits, console: Callable[[bytes], None], after_turn: Callable[[], None]) -> End:
        """Run the guest. Raises MachineError."""
        return self.guest.go(limits, console, after_turn)

    def ending(self, outcome: Outcome) -> Ending:
        """The end of the run. QEMU ends with it, and does not say where its guest was."""
        self.guest.close()
        return bare_ending(outcome)


class LiveBuilding:
    """Makes a `LiveTraced` from what was prepared: a `kinst.runtime.tracing.guests.built.Build`."""

    def __init__(self, text: str, on_stop: Callable[[], str] | None, *, is_lossless: bool) -> None:
        """`text` is the value of --on; `on_stop`: see `LiveGuest`. `is_lossless`: hits wait while the ring is full."""
        self._text, self._on_stop, self._is_lossless = text, on_stop, is_lossless
        self._calls: SystemCalls | None = None

    def providers(
        self, host: ImageHost, is_wanted: Callable[[str], bool], descriptions: Sequence[str]
    ) -> list[Provider]:
        """See `kinst.runtime.tracing.guests.built.MakesProviders`: all others read memory when they are called."""
        self._calls = SystemCalls(host, descriptions) if is_wanted(SystemCalls.registration.name) else None
        return [] if self._calls is None else [self._calls]

    def __call__(
        self, prepared: Prepared, types: ImageTypes, plug_ins: PlugIns, warn: Callable[[str], None]
    ) -> LiveTraced:
        """Check the command and the image; QEMU is not started yet. Raises KinstError: it cannot run this."""
        image, request = prepared.image, prepared.request
        if prepared.modules:
            raise UsageError(
                f"--module {prepared.modules[0].image.module}: has breakpoints, and under QEMU nothing handles them"
            )
        probed = next((one.image.module for one in prepared.beside if one.manifest is not None), None)
        if probed is not None:
            raise UsageError(f"--load {probed}=...: under QEMU only IMAGE has probes: leave the name out, or --on")
        command = qemu_command(self._text, prepared.facts.qemu.words, request.configuration)
        fields = Fields(prepared.original, types, request.system, lambda: command.cpus or _cpus(command))
        calls = self._calls
        kept = _kept(prepared, fields, warn, calls, wants_room=command.has_room, is_lossless=self._is_lossless)
        if calls is not None:
            kept.probes.follow(calls)
        host = NoGuest(ClockKind.HOST, image.facts, kept.probes.frame)
        start = lambda sites: _started(prepared, command, kept, sites, host.machine.now, warn)  # noqa: E731
        reason = "" if command.has_console else silence_reason(command, prepared.original, request.configuration)
        silence = Silence(reason, warn) if reason else None
        guest = LiveGuest(host.machine, start, ConsolePanic(prepared), silence, self._on_stop)
        segments = ((one.address, one.load_address, one.size) for one in image.segments if one.kind == PT_LOAD)
        loaded = Loaded(image, 0, image.entry, tuple(segments))
        found = kept.probes.surroundings(host, loaded, types, guest.begin, kept.admit, plug_ins)
        wanted = request.coverage
        covering = None if wanted is None else LiveCovering(prepared, kept.probes, wanted, warn)
        return LiveTraced(prepared, replace(found, fold=guest.fold, stop=guest.stop), loaded, guest, covering)


def live_building(request: Request, on_stop: Callable[[], str] | None) -> LiveBuilding:
    """What builds the guest of a request with --on. Raises UsageError: it asks for what QEMU cannot do."""
    assert request.on is not None, "it is to run there"
    check_asked(request)
    return LiveBuilding(request.on, on_stop, is_lossless=request.is_lossless)


def by_signal() -> str:
    """How a guest that stop() has paused goes on where a command runs it."""
    return f"kill -CONT {os.getpid()} lets it go on, and so does Ctrl-A c on its console"


@dataclass(frozen=True, slots=True)
class _Kept:
    """The probes of an image, which clauses they admit, and what makes the image that QEMU loads, given how many bytes
    of RAM there are and what of them is kept for a copy of it: None where that is the file as it is. And what tells the
    CPU in records, asked for only if there are any; and whether the image may be one that copies itself."""

    probes: KeptProbes
    admit: Admit
    make: Callable[[SiteTable | None, int, KeptBack | None], StandaloneImage | None]
    cpu: Callable[[], CpuSource | None] = lambda: None
    may_copy: bool = False


def _kept(
    prepared: Prepared,
    fields: Fields,
    warn: Callable[[str], None],
    calls: SystemCalls | None,
    *,
    wants_room: bool,
    is_lossless: bool,
) -> _Kept:
    manifest, late = prepared.manifest, prepared.planned.late
    if manifest is None:
        return _Kept(
            KeptProbes(prepared, None, warn),
            lambda _clause, _probes, _delivery: None,
            lambda _sites, _memory, _back: None,
        )
    if manifest.standalone is not None:
        return _kept_already(prepared, manifest, manifest.standalone, warn, calls, is_lossless=is_lossless)
    if late is None:
        raise UsageError(f"{prepared.path}: has breakpoints, and under QEMU nothing handles them: give the original")
    named = labelled(prepared.image) if wants_room else prepared.image
    has_room = wants_room and may_have_room(named)
    request = prepared.request
    keeping = Keeping(
        manifest,
        fields,
        notes_time=request.records_time or request.records_hits,
        notes_tasks=request.records_tasks,
        notes_hits=request.records_hits,
        is_lossless=is_lossless,
        calls=calls,
    )

    def made(sites: SiteTable | None, memory: int, back: KeptBack | None) -> StandaloneImage:
        if sites is not None:
            keeping.enabled(sites.is_recorded, has_actions=bool(prepared.request.actions))
        wanted = keeping.request()
        if has_room:
            wanted = in_room(wanted, memory)
        wanted, base = where(wanted, back)
        with _asking_for_less(request):
            alone = standalone_image(prepared.opened, late, wanted, prepared.request.progress, base)
        keeping.check(alone.manifest, alone.refused)
        if has_room and not len(alone.image.symbols):
            return replace(alone, image=replace(alone.image, symbols=named.symbols))
        return alone

    return _Kept(KeptProbes(prepared, manifest, warn), keeping, made, lambda: fields.cpu_source, may_copy=True)


@contextmanager
def _asking_for_less(request: Request) -> Iterator[None]:
    """Says of an image without room for counters at all instructions that there may be some for those of functions."""
    try:
        yield
    except KinstError as error:
        if request.coverage is not None and request.coverage.granularity is not Granularity.FUNCTIONS:
            error.args = (f"{error}; --coverage-of functions takes less room",)
        raise


def _kept_already(
    prepared: Prepared,
    manifest: Manifest,
    kept: Standalone,
    warn: Callable[[str], None],
    calls: SystemCalls | None,
    *,
    is_lossless: bool,
) -> _Kept:
    """Of an image that is standalone as it is given."""
    if calls is not None and calls.is_planted:
        raise UsageError(f"syscall: {prepared.path}: was not made for these probes: give the original")
    if is_lossless and kept.has_ring:
        raise UsageError(f"--lossless: {prepared.path}: its hits do not wait: give the original")
    probes = StandaloneProbes(prepared, manifest, kept, warn)

    def checked(sites: SiteTable | None, _memory: int, _back: KeptBack | None) -> StandaloneImage:
        probes.check(sites)
        return StandaloneImage(prepared.image, manifest, "")

    return _Kept(probes, probes.admitting(warn), checked)


def _started(
    prepared: Prepared,
    command: QemuCommand,
    kept: _Kept,
    sites: SiteTable | None,
    now: Callable[[], int],
    warn: Callable[[str], None],
) -> Started:
    """Make the image, and start QEMU with it. Raises KinstError."""
    memory = command.memory or _memory_of(command)
    back = kept_from(prepared.original, prepared.facts, command, memory) if kept.may_copy else None
    alone = kept.make(sites, memory, back)
    if alone is not None and alone.refused and not prepared.request.options.is_on("quiet"):
        warn(alone.refused)
    image = prepared.image if alone is None else alone.image
    if back is not None:
        command = command.with_memory(back.total)
    ram = SharedRam(memory if back is None else back.total)
    room = room_of(image, alone.manifest) if alone is not None and command.has_room else None
    in_front = room if isinstance(room, Layout) else None
    told = None if back is None else memory
    wanted = invocation(command, image, prepared.request.configuration, prepared.facts, in_front, told)
    follows = room is None and alone is not None and is_followed(alone, command)
    with ExitStack() as files:
        descriptors = [files.enter_context(file).fileno() for file in wanted.files]
        descriptors += wanted.disks
        qemu = Qemu(
            wanted.words,
            ram,
            files=descriptors,
            wants_console=not command.has_console,
            wants_stub=room is not None or follows,
        )
    try:
        ram.place(qemu.monitor.human("info mtree -f"))
        if alone is None:
            return Started(qemu, ram, None)
        if wanted.is_placed:
            _check_memory(alone, ram)
        if back is not None:
            tell(back, ram, is_told=wanted.is_told)
        hits = _hits(prepared, kept, alone, qemu, ram, now, warn)
        if follows:
            program, progress = lambda: prepared.opened().program, prepared.request.progress
            return Started(
                qemu, ram, hits, follower(alone, back, program, progress, qemu, ram, hits, is_told=wanted.is_told)
            )
        stops = None if room is None else _mapper(prepared, kept, alone, room, hits, qemu, ram, warn)
        return Started(qemu, ram, hits, stops)
    except BaseException:
        qemu.close()
        ram.close()
        raise


def _hits(
    prepared: Prepared,
    kept: _Kept,
    alone: StandaloneImage,
    qemu: Qemu,
    ram: SharedRam,
    now: Callable[[], int],
    warn: Callable[[str], None],
) -> Hits:
    manifest, standalone = alone.manifest, alone.manifest.standalone
    assert standalone is not None, "it was made so"
    timebase = prepared.facts.timebase
    if TIME in standalone.every_field:
        timebase = timebase_of(qemu.monitor, prepared.facts.qemu.counter) or timebase
    assert prepared.manifest is not None, "there are probes"
    rows = np.searchsorted(prepared.manifest.sites["address"], manifest.sites["address"])
    cpu = kept.cpu() if standalone.has_ring else None
    if CPU in standalone.every_field:
        cpu = replace(cpu or own_number(prepared.image.facts), order=order_of_cpus(qemu.monitor))
    kept.probes.expect(standalone, manifest.site_forms, timebase, rows, cpu)
    placement = Placement(alone.image, manifest, standalone, range(ram.start, ram.start + ram.size))
    return Hits(kept.probes, alone, placement, ram, now, warn)


def _mapper(
    prepared: Prepared,
    kept: _Kept,
    alone: StandaloneImage,
    room: Room,
    hits: Hits,
    qemu: Qemu,
    ram: SharedRam,
    warn: Callable[[str], None],
) -> Driver:
    """Keeps the room free, and maps it. Raises MachineError."""

    def moved(by: int) -> None:
        kept.probes.move(by)
        if prepared.request.is_verbose:
            warn(f"the kernel moved itself by {by:#x} bytes (KASLR), and its trampolines with it")

    keeps_seed = may_move_itself(prepared.original)
    return mapper_of(
        *(alone.image, alone.manifest, room, hits.physical(room.code.start), ram, qemu.stub),
        on_moved=moved,
        keeps_seed=keeps_seed,
    )


def _check_memory(alone: StandaloneImage, ram: SharedRam) -> None:
    """Raises UsageError: the board has no memory where QEMU puts what probes count, or nothing that we can read."""
    kept = alone.manifest.standalone
    assert kept is not None, "it was made so"
    if not ram.holds(kept.load_address, kept.size):
        raise UsageError(
            f"--on: the image keeps its hits at {kept.load_address:#x}, and this board's memory is at {ram.where}: "
            "choose a board with memory there (-M), or more of it (-m)"
        )


def _memory_of(command: QemuCommand) -> int:
    """Bytes of RAM of a machine whose command has no -m that we can read. Raises UsageError: it has none."""
    size = int(_asked(command, "query-memory-size-summary")["base-memory"])
    if not size:
        raise UsageError("--on: this board has no memory for an image: choose another -M, or say how much by -m")
    return size


def _cpus(command: QemuCommand) -> int:
    """How many CPUs it has, if its command has no -smp that we can read."""
    return len(_asked(command, "query-cpus-fast"))


def _asked(command: QemuCommand, question: str) -> Any:
    """The answer of a QEMU that is started only to ask it."""
    qemu = Qemu(command.with_image("/dev/null"), None, wants_console=False)
    try:
        return qemu.monitor.ask(question)
    finally:
        qemu.close()
