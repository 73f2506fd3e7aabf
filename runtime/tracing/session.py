"""An image file and what the user wants -> a machine that runs it, probes enabled, output written."""

import re
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol

from kinst.rewriter.inline_lookup import DebugInlines
from kinst.rewriter.inline_probes import Expansion
from kinst.rewriter.numbering import numbered
from kinst.rewriter.outcome_report import summary_lines
from kinst.rewriter.plan import Plan, make_plan
from kinst.rewriter.program import with_names
from kinst.rewriter.refusals import summary
from kinst.rewriter.resolve import Resolution, numbering_of, resolve
from kinst.rewriter.rewriting import Opened, Source, open_source, plan_probes
from kinst.runtime.clauses.moved_image import MovedImage
from kinst.runtime.machine.boards.registry import new_board
from kinst.runtime.machine.call import CALL_RETURNS_TO, FunctionCall, find_function, load_for_call, parse_call
from kinst.runtime.machine.configuration import Configuration, End
from kinst.runtime.machine.loader import load_image
from kinst.runtime.machine.system import System
from kinst.runtime.patched.deferred import DeferredSites
from kinst.runtime.patched.mode_check import ModeCheck
from kinst.runtime.patched.moved_trampolines import moved_trampolines
from kinst.runtime.patched.relocated import RelocatedCopies
from kinst.runtime.patched.sites import Patched, SiteTable, trampoline_code
from kinst.runtime.providers import dtrace
from kinst.runtime.providers.dtrace import DtraceProvider
from kinst.runtime.providers.fbt import fbt_provider
from kinst.runtime.providers.host import GuestMemory, ImageHost
from kinst.runtime.providers.kinst import kinst_provider
from kinst.runtime.providers.plugged import installed_providers
from kinst.runtime.providers.provider import Providers
from kinst.runtime.providers.sdt import sdt_providers
from kinst.runtime.tracing.inline_arguments import InlineArguments
from kinst.runtime.tracing.inline_clauses import InlineClauses, OwnCode
from kinst.runtime.trap.arch.registry import emulator
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.runtime.unwinding.arch.registry import stack_effects
from kinst.runtime.unwinding.locations import Machine
from kinst.runtime.unwinding.pending_returns import PendingReturns
from kinst.runtime.unwinding.return_addresses import ReturnAddresses, named, reader, rules
from kinst.targets.c_types import ImageTypes, NoImageTypes
from kinst.targets.debuginfo.call_sites import CallSites
from kinst.targets.errors import ProbeError, UsageError
from kinst.targets.image import Image, open_image
from kinst.targets.machines.registry import default_machine, machine_facts
from kinst.targets.manifest import Manifest, Method, find_manifest
from kinst.targets.probe import ProbeName, parse_probe_names

_LONGEST_LINE: Final = 4096  # bytes in which --until looks: it looks again with each
_LINE_REST: Final = 20_000_000  # ns that a line which matched --until gets to be completed


class Consumer(Protocol):
    """Where output goes."""

    def begin(self, *, with_header: bool) -> None:
        """The machine is about to run."""
        ...

    def fired(self, firing: Firing) -> None:
        """A probe's default action."""
        ...

    def console(self, data: bytes) -> None:
        """The guest printed."""
        ...

    def flush(self) -> None:
        """Write what is complete."""
        ...

    def end(self) -> None:
        """The machine stopped."""
        ...


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user asks of a run."""

    image: Path
    machine: str | None = None
    configuration: Configuration = field(default_factory=Configuration)
    descriptions: tuple[str, ...] = ()  # what to enable; empty: all probes of a patched image
    names: tuple[ProbeName, ...] | None = None  # instead: what a D program may enable; what matches nothing is no error
    asks_for: Callable[[str], bool] = lambda _provider: True  # whether programs name a provider of another package
    timeout: float | None = None  # seconds of the machine's time
    wall_timeout: float | None = None  # seconds of the host's time
    tells_more: bool = False  # -v: what is told of a run that is over, too
    until: str | None = None  # regular expression on the console
    method: Method | None = None  # how probed instructions are carried out; None: as a patched image says, else AUTO
    call: str | None = None  # a function call instead of booting
    debug_file: Path | None = None  # debug information and symbols of the image, if not in it or found by themselves
    symbols: Path | None = None  # names for its code: System.map, the output of nm, an ELF file
    name: str | None = None  # its module, if not the file's name
    modules: tuple[tuple[str, Path], ...] = ()  # kernel modules whose types programs may name

    @property
    def source(self) -> Source:
        """The image and where names for it come from."""
        return Source(self.image, self.name, self.symbols, self.debug_file)


@dataclass(frozen=True, slots=True)
class Matched:
    """A description and how many probes it enabled."""

    description: str
    count: int


class Session:
    """One run."""

    def __init__(self, wanted: Wanted, opened: Opened | None = None, types: ImageTypes | None = None) -> None:
        """Make the machine and load the image; nothing runs yet. Raises KinstError.

        Args:
            wanted: what the user asks for.
            opened: the image taken apart, for `Wanted.names`; other packages' providers get to see it too.
            types: prototypes of functions, for args[].
        """
        self.wanted = wanted
        self._opened = opened
        self._types: ImageTypes = NoImageTypes() if types is None else types
        self._plugs = None if opened is None else ImageHost(opened.program.image)
        self._plugged = installed_providers(self._plugs, wanted.asks_for)
        self._until = _compiled(wanted.until)
        self._inlines: DebugInlines | None = None
        self.expansions: dict[str, Expansion] = {}  # of names that mean inlined copies
        self.own_code: dict[str, tuple[OwnCode, ...]] = {}  # the functions that they mean besides
        self.reasons: dict[str, str] = {}  # why a name of `Wanted.names` matches nothing
        self.refusals: tuple[str, ...] = ()  # what was refused of the others: a line each
        image, manifest, plan = self._open(wanted, opened)
        facts = machine_facts(wanted.machine or default_machine(image.facts.name))
        if facts.arch != image.facts.name:
            raise UsageError(f"{wanted.image}: is for {image.facts.name}, and {facts.name} is not")
        if wanted.call is not None and wanted.configuration.cpus > 1:
            raise UsageError("--call runs a function on one CPU: --cpus is for an image that boots")
        self.system = System(facts, new_board(facts.name), wanted.configuration)
        skip = manifest.trampolines[0] if manifest is not None and plan is None else None
        self._call = None if wanted.call is None else parse_call(wanted.call)
        if self._call is None:
            seed = wanted.configuration.kaslr_seed
            self.loaded = load_image(image, facts, self.system.memory, skip=skip, kaslr_seed=seed)
        else:
            self.loaded = load_for_call(image, self.system, skip=skip)
        self.dtrace = DtraceProvider()
        self.providers = Providers([self.dtrace])
        self._sites: SiteTable | None = None
        self.pending_returns: PendingReturns | None = None
        self._deferred: DeferredSites | None = None
        self.moved = MovedImage(self.loaded.image, lambda: (self.loaded.bias,))
        if manifest is not None:
            manifest = manifest if manifest.is_numbered else numbered(manifest, numbering_of(self.opened.program))
            if wanted.method is not None:
                manifest = replace(manifest, method=wanted.method.value)
            trampolines = trampoline_code(self.loaded, manifest) if plan is None else plan.trampolines.tobytes()
            self._add_sites(Patched(manifest, self.loaded, trampolines))
        self.result: int | None = None  # of `--call`
        self.warn: Callable[[str], None] = lambda _line: None  # at once, on stderr
        self._descriptions = wanted.descriptions or (manifest.options if manifest is not None else ())

    def _add_sites(self, patched: Patched) -> None:
        system = self.system
        sites = SiteTable(patched, system.arch, emulator(system.arch), system.exceptions)
        self._sites = sites
        self.providers.register(kinst_provider(sites))
        self.providers.register(fbt_provider(sites, system.arch, self._types.function))
        for provider in sdt_providers(sites, system.arch, self._find):
            self.providers.register(provider)
        self.providers.skip_to(patched.manifest.next_identifier)
        sites.map_trampolines(system.space, system.trap, system.engine)
        trampolines = moved_trampolines(system, self.loaded, patched.manifest.trampolines[0])
        copies = RelocatedCopies(sites, self.loaded, system.trap, trampolines, system.exceptions, system.space)
        system.pristine = copies.pristine
        self.moved = MovedImage(self.loaded.image, lambda: copies.distances)
        check = ModeCheck(copies.claim, copies.pristine, system, lambda line: self.warn(line))
        system.trap.dtrace_invop_add(check.claim)
        self.pending_returns = self._pending_returns(copies)
        sites.returning = self.pending_returns.waiting
        if sites.manifest.is_deferred.any():
            self._deferred = DeferredSites(sites, self.loaded, system, trampolines)
            system.trap.dtrace_invop_add(self._deferred.claim)

    def _pending_returns(self, copies: RelocatedCopies) -> PendingReturns:
        system = self.system
        arch, effects = system.arch, stack_effects(system.arch)
        symbols = named(self.loaded.image, self._link_address)
        returns = ReturnAddresses(
            arch,
            effects,
            system.exceptions.armed,
            reader(system, copies.pristine),
            lambda address: address == CALL_RETURNS_TO or symbols(address),
            rules(arch, effects, lambda: self.opened.program, self._link_address),
        )
        pending = PendingReturns(arch, system.trap.firing, system.engine.frame.read, returns)
        pending.marks = system.engine.look_at_blocks(pending.look)
        return pending

    def _link_address(self, address: int) -> int:
        return self.moved.original(address) - self.loaded.bias

    def enable(self, action: Callable[[Firing], None]) -> Iterator[Matched]:
        """Enable the probes of every description; one `Matched` each, in order.

        Raises:
            ProbeError: a description that matches nothing.
        """
        for description in self._descriptions:
            names = parse_probe_names(description, providers=self.providers.names)
            count = sum(self.providers.enable(name, action) for name in names)
            if not count:
                raise ProbeError(f"probe description {description} does not match any probes")
            yield Matched(description, count)
        self.arm()

    def arm(self) -> None:
        """Write the breakpoints of enabled probes into memory; the others' bytes are the original ones."""
        if self._sites is not None:
            self._sites.arm(self.system.memory, self.system.trap)
        if self._deferred is not None:
            self._deferred.refresh()

    def passed_over(self) -> str:
        """Which enabled sites hold what cannot be probed, since the guest wrote there; empty if none does."""
        return "" if self._deferred is None else summary(*self._deferred.passed_over())

    def run(self, consumer: Consumer, *, with_header: bool = True) -> End:
        """Start the board and run until the end. Ctrl-C is an end like others: nothing is lost.

        Raises:
            MachineError: the guest stopped for good.
        """
        self.system.after_turn = consumer.flush
        consumer.begin(with_header=with_header and bool(self._descriptions))
        self._fire(dtrace.BEGIN)
        try:
            with interruptible(self.system.finish):
                end = self.run_machine(consumer.console)
        finally:
            self._fire(dtrace.END)
            consumer.end()
        return end

    def run_machine(self, console: Callable[[bytes], None]) -> End:
        """Start the board, or make the call, and run until the end; nothing but the guest's console is seen to."""
        system = self.system
        watch = _UntilWatch(system, self._until)
        system.attach_timed(watch)

        def sink(data: bytes) -> None:
            console(data)
            watch.look(data)

        system.console_sink = sink
        call = None
        if self._call is None:
            system.board.start(system, self.loaded)
            system.space.start()
        else:
            address = find_function(self.loaded.image, self._call.function, self._discovered)
            call = FunctionCall(system, self.loaded, self._call, address)
        end = system.run(nanoseconds(self.wanted.timeout), nanoseconds(self.wanted.wall_timeout))
        if call is not None and end is End.RETURNED:
            self.result = call.result
        return end

    def _discovered(self) -> dict[str, int]:
        """Names and addresses of all functions, those without a symbol included."""
        functions = self.opened.program.functions
        return dict(zip(functions.names, functions.address.tolist(), strict=True))

    def _fire(self, identifier: int) -> None:
        frame = self.system.trap.firing.frame
        enabling = Enabling(identifier, lambda _firing: None, lambda _firing, _index: 0, 0)
        firing = Firing(frame, enabling)
        firing.cpu = self.system.current.number
        self.dtrace.fire(identifier, firing)

    @property
    def opened(self) -> Opened:
        """The image taken apart; read when it is asked for, if nobody needed it before."""
        if self._opened is None:
            self._opened = open_source(self.wanted.source)
        return self._opened

    def _find(self, symbol: str) -> int | None:
        """The run-time address of a symbol."""
        address = self.loaded.image.symbols.address_of(symbol)
        return None if address is None else address + self.loaded.bias

    def plug_in(self, memory: GuestMemory) -> None:
        """Register other packages' providers; `memory` is the guest's."""
        if self._plugs is not None and self._plugged:
            if self._sites is not None:
                self._plugs.attach(self._sites, memory, self.loaded.bias)
            for provider in self._plugged:
                self.providers.register(provider)

    def _open(self, wanted: Wanted, opened: Opened | None) -> tuple[Image, Manifest | None, Plan | None]:
        """The image to load; the manifest; and the plan, if the image is patched in memory."""
        if wanted.names is None or opened is None:
            return _open_for_descriptions(wanted)
        planted = () if self._plugs is None else self._plugs.names
        plan = self._planned(opened, (*wanted.names, *planted))
        if plan is not None:
            return plan.image, plan.manifest, plan
        return _as_it_is(wanted)

    def _planned(self, opened: Opened, names: Sequence[ProbeName]) -> Plan | None:
        """Plan what can be patched for a program; None if that is nothing."""
        if not names:
            return None
        inlines = self._inlines = opened.inlines(with_parameters=True, types=self._types)
        resolution = resolve(opened.program, names, inlines=inlines)
        for outcome in resolution.outcomes:
            if outcome.error is not None:
                self.reasons[str(outcome.name)] = str(outcome.error).removeprefix(f"{outcome.name}: ")
        useful = tuple(outcome for outcome in resolution.outcomes if outcome.error is None)
        if not useful:
            return None
        resolution = replace(resolution, outcomes=useful)
        self._expand(resolution)
        plan = make_plan(resolution, earlier=opened.manifest)
        self.refusals = tuple(summary_lines(resolution, plan.lost, len(plan.manifest.sites)))
        return plan

    def _expand(self, resolution: Resolution) -> None:
        functions = resolution.program.functions
        for outcome in resolution.outcomes:
            if outcome.expansion is not None:
                fbt = outcome.expansion.fbt
                pairs = zip(fbt.rows.tolist(), fbt.names.tolist(), strict=True)
                named = ((int(functions.address[row]), resolution.names.text_of(number)) for row, number in pairs)
                self.expansions[str(outcome.name)] = outcome.expansion
                self.own_code[str(outcome.name)] = tuple(OwnCode(address, text) for address, text in named)

    def inline_clauses(self, machine: Machine) -> InlineClauses:
        """What descriptions stand for that mean inlined copies; `machine` is what locations of arguments ask."""
        arguments = InlineArguments(machine, lambda unit: self.call_sites().terms(unit))
        return InlineClauses(self.expansions, self.own_code, self._sites, arguments)

    def call_sites(self) -> CallSites:
        """The calls of the image, as debug information has them. Raises KinstError: there is none."""
        if self._inlines is None:
            self._inlines = self.opened.inlines()
        return self._inlines.call_sites


def _open_for_descriptions(wanted: Wanted) -> tuple[Image, Manifest | None, Plan | None]:
    site_names = [
        name
        for description in wanted.descriptions
        for name in parse_probe_names(description)
        if not _is_without_site(name)
    ]
    if site_names:
        _, plan = plan_probes(open_source(wanted.source), site_names)
        return plan.image, plan.manifest, plan
    return _as_it_is(wanted)


def _as_it_is(wanted: Wanted) -> tuple[Image, Manifest | None, None]:
    """The image of the file, with the module and the names that it was patched with."""
    image = open_image(wanted.image, module=wanted.name)
    manifest = find_manifest(image)
    if manifest is not None:
        image = replace(with_names(image, manifest.given), module=wanted.name or manifest.module)
    return image, manifest, None


def _is_without_site(name: ProbeName) -> bool:
    """A probe of a provider that patches nothing."""
    return len(DtraceProvider().match(name)) > 0


def nanoseconds(seconds: float | None) -> int | None:
    """The same time in whole nanoseconds."""
    return None if seconds is None else int(seconds * 1e9)


def _compiled(expression: str | None) -> re.Pattern[bytes] | None:
    if expression is None:
        return None
    try:
        return re.compile(expression.encode(errors="surrogateescape"))
    except re.error as error:
        raise UsageError(f"--until {expression}: not a regular expression: {error}") from error


class _UntilWatch:
    """Looks for the --until expression in each line of the console. A match ends the run when its line is complete, or
    a little later if it is a prompt."""

    def __init__(self, system: System, expression: re.Pattern[bytes] | None) -> None:
        self._system = system
        self._expression = expression
        self._line = bytearray()
        self._end_at: int | None = None

    def look(self, data: bytes) -> None:
        """The guest printed."""
        if self._expression is None:
            return
        for byte in data:
            if byte == ord("\n"):
                if self._end_at is not None:
                    self._system.finish(End.UNTIL)
                self._line.clear()
                continue
            self._line.append(byte)
            if len(self._line) > _LONGEST_LINE:
                del self._line[: _LONGEST_LINE // 2]
            if self._end_at is None and self._expression.search(self._line):
                self._end_at = self._system.clock.now() + _LINE_REST

    def deadline(self) -> int | None:
        """When the line has had its time."""
        return self._end_at

    def advance(self) -> None:
        """Enough."""
        self._end_at = None
        self._system.finish(End.UNTIL)


@contextmanager
def interruptible(finish: Callable[[End], None]) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the run instead of raising in the middle of a callback: nothing is lost."""

    def interrupt(_number: int, _frame: object) -> None:
        finish(End.INTERRUPTED)

    before: dict[signal.Signals, Any] = {}
    try:
        if threading.current_thread() is threading.main_thread():  # elsewhere somebody else deals with signals
            before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
