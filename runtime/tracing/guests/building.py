"""What was prepared -> a guest: the machine, the image in it, and what clauses can see. Nothing runs yet."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kinst.rewriter.standalone.in_memory import contents
from kinst.runtime.clauses.environment import GuestProfile, Symbols
from kinst.runtime.clauses.guest.guest_memory import GuestMemory
from kinst.runtime.clauses.guest.kernel_tables import with_kernel
from kinst.runtime.clauses.guest.moved_image import MovedImage
from kinst.runtime.clauses.guest.no_guest import NoUserSymbols
from kinst.runtime.clauses.guest.unmapped_image import with_unmapped_image
from kinst.runtime.clauses.profiles import Guest as Known
from kinst.runtime.clauses.profiles import profile_for, user_mode, user_mode_register
from kinst.runtime.clauses.scratch import Scratch
from kinst.runtime.machine.boards.registry import board_of
from kinst.runtime.machine.calling.loading import load_for_call
from kinst.runtime.machine.interrupts import Interrupt, Interrupts
from kinst.runtime.machine.loading.arriving import Arriving
from kinst.runtime.machine.loading.hosted import refuse_program
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.loading.loader import load_image, misplaced
from kinst.runtime.machine.started_files import watch_started_files
from kinst.runtime.machine.system import System
from kinst.runtime.patched.modules.module_sites import ModuleSites
from kinst.runtime.patched.own_copies import OwnCopies
from kinst.runtime.patched.patched_file import trampoline_code
from kinst.runtime.patched.sites import Patched
from kinst.runtime.providers.dtrace import DtraceProvider
from kinst.runtime.providers.provider import Providers
from kinst.runtime.systems.linux import LINUX
from kinst.runtime.systems.linux_modules import LinuxModules
from kinst.runtime.systems.registry import SYSTEMS
from kinst.runtime.tracing.guests.guest import Guest
from kinst.runtime.tracing.guests.snapshotting import GuestSnapshots
from kinst.runtime.tracing.host.contract import blank_firing
from kinst.runtime.tracing.host.guest_host import GuestHost
from kinst.runtime.tracing.host.replaying import replays_of
from kinst.runtime.tracing.host.surroundings import SCRATCH, Surroundings
from kinst.runtime.tracing.host.targets import Chosen, chosen, number_if
from kinst.runtime.tracing.images.beside_code import BesideImages
from kinst.runtime.tracing.images.guest_modules import GuestModules
from kinst.runtime.tracing.images.image_probes import inline_clauses, providers_of, register_image, register_module
from kinst.runtime.tracing.images.module_code import ModulesCode
from kinst.runtime.tracing.images.modules import module_sites
from kinst.runtime.tracing.images.patched_code import PatchedCode
from kinst.runtime.tracing.images.placed_images import PlacedImage, PlacedImages, PlacedRules, PlacedSymbols
from kinst.runtime.tracing.images.plug_ins import PlugIns
from kinst.runtime.tracing.images.preparing import Prepared
from kinst.runtime.trap.trap import Firing
from kinst.runtime.unwinding.contexts import Contexts
from kinst.runtime.unwinding.frame_rules import FrameRules, Rules
from kinst.runtime.unwinding.stack_regions import StackRegions, stack_size
from kinst.runtime.unwinding.stacks import MachineStacks
from kinst.runtime.unwinding.user_programs import UserPrograms
from kinst.runtime.unwinding.user_stacks import UserStackWalker
from kinst.runtime.userspace.guest_files import GuestFiles
from kinst.targets.c_types import ImageTypes
from kinst.targets.errors import MachineError, UsageError
from kinst.targets.kernels.kernel_module import KernelModule
from kinst.targets.method import Method
from kinst.targets.probe import WATCHING

if TYPE_CHECKING:
    from kinst.runtime.debugger.debugger import Debugger
    from kinst.runtime.patched.sites import SiteTable
    from kinst.runtime.tracing.guests.covering import Covering
    from kinst.runtime.tracing.guests.event_log import EventLog
    from kinst.runtime.tracing.host.machine_host import MachineHost
    from kinst.runtime.userspace.user_code import UserCode


def build(prepared: Prepared, types: ImageTypes, plug_ins: PlugIns, warn: Callable[[str], None]) -> Guest:
    """Make the machine and load the image.

    Args:
        prepared: the image, its manifest and the request.
        types: prototypes of functions, for args[].
        plug_ins: the providers of other packages that are wanted.
        warn: called at once with warnings that cannot wait for the output.

    Raises:
        KinstError: the image does not fit the machine.
    """
    request = prepared.request
    counts_hits = prepared.manifest is None or prepared.manifest.method != Method.TRAP
    board = board_of(prepared.facts.board)
    system = System(prepared.facts, board, request.configuration, counts_hits=counts_hits)
    loaded = _loaded(prepared, system)
    if prepared.beside:
        loaded = Arriving(loaded.image, loaded)
    wrong = None if prepared.call is not None else misplaced(loaded, prepared.facts)
    if wrong is not None:
        warn(wrong)
    watch_started_files(system, warn)
    if prepared.manifest is not None and prepared.manifest.standalone is not None:
        if request.coverage is not None:
            raise UsageError("--coverage: not where jumps are in the code: run the original image")
        # With all that reads what images count by themselves, which few do.
        from kinst.runtime.tracing.standalone.guest import StandaloneGuest
        from kinst.runtime.tracing.standalone.probes import StandaloneProbes

        _write_jumps(prepared, system, loaded)
        probes = StandaloneProbes(prepared, prepared.manifest, prepared.manifest.standalone, warn)
        standalone = StandaloneGuest(probes, system, loaded, is_made_here=prepared.planned.plan is not None)
        snapshots = GuestSnapshots(prepared, system, loaded, None, warn)
        given = replace(standalone.surroundings(types, warn), snapshots=snapshots), prepared, snapshots
        around, door = _with_debugger(*given, system, loaded, None, warn)
        made = prepared, system, loaded, None, around, None, standalone
        return Guest(*made, snapshots=snapshots, debugger=door, warn=warn)
    code = _patched_code(prepared, system, loaded, warn)
    snapshots = GuestSnapshots(prepared, system, loaded, None if code is None else code.sites, warn)
    beside = BesideImages(loaded, prepared.beside, system, warn) if isinstance(loaded, Arriving) else None
    moved = _moved(system, loaded) if code is None else code.moved
    is_user = user_mode(system.arch, system.engine.live.get)
    host, dtrace = GuestHost(system, is_user), DtraceProvider()
    sites = None if code is None else code.sites
    providers = providers_of(dtrace, host, sites, loaded, types)
    modules = [] if code is None else [module_sites(one, system, loaded, code) for one in prepared.modules]
    scratch = Scratch(SCRATCH)
    observe = with_unmapped_image(system.space.observe, loaded.segments, system.space.stage)
    task = prepared.original.symbols.address_of(LINUX.evidence)
    mapped = None if task is None else task + loaded.bias
    user_tables, in_user_mode = system.arch.linux.user_tables, user_mode_register(system.arch, system.engine.live.get)
    observe = with_kernel(
        observe, system.space.observe_without, system.engine.live.get, user_tables, mapped, in_user_mode
    )
    memory = GuestMemory(scratch, observe, system.space.observe_write, system.memory)
    reader = LinuxModules(memory, types)
    names = prepared.original.symbols
    late = GuestModules(prepared.loading, prepared.modules, system, loaded, names, code, reader, warn)
    tables = [*(one.table for one in modules), *(one.table for one in late.sites)]
    _register(providers, host, types, tables, beside)
    plug_ins.register(providers, sites, memory, loaded.bias, host.now)
    watched = _watched(prepared, system, loaded, types, providers, plug_ins)
    rules = _rules(prepared, loaded, moved) if code is None else code.frame_rules
    first = PlacedImage(prepared.original, prepared.program, loaded, moved, rules)
    all_rules, symbols, locate_beside = _views(first, beside)
    read = lambda address, size: system.pristine(address, memory.read(address, size))  # noqa: E731
    in_modules = ModulesCode(symbols, all_rules, system.arch, read)
    stacks = MachineStacks(system.arch, memory, in_modules, is_user=is_user)
    late.on_change(_both_of(in_modules.change, stacks.forget))
    covering = _covering(prepared, system, first, beside)
    if beside is not None:
        beside.on_arrival(_both(stacks.forget, None if covering is None else covering.images_changed))
    size = stack_size(prepared.original.symbols)
    contexts = _contexts(system, stacks, size)
    known = Known(
        name=prepared.path.name,
        arch=system.arch,
        types=types,
        memory=memory,
        is_user=is_user,
        threads=contexts,
        symbol=prepared.original.symbols.address_of,
        register=system.space.kernel_registers.real,
        bias=loaded.bias,
        stack_size=size,
    )
    profile = profile_for(known, SYSTEMS, request.system)
    stacks.cross(profile.interrupted)
    files = GuestFiles(request.configuration.initrd, request.users)
    programs = UserPrograms(files.given(), system.arch, memory, files.found)
    is_chosen = chosen(request.target, known, profile, files.resolved)
    in_programs = _register_in_programs(known, profile, system, watched, plug_ins, providers, files, is_chosen, warn)
    surroundings = Surroundings(
        host=host,
        providers=providers,
        dtrace=dtrace,
        scratch=scratch,
        memory=memory,
        stacks=stacks,
        user_stacks=UserStackWalker(system.arch, memory, profile.user_registers, programs),
        symbols=in_modules,
        user_symbols=programs if request.users or in_programs is not None else NoUserSymbols(symbols.object_start),
        locate=moved.locate,
        locate_beside=locate_beside,
        profile=profile,
        target=number_if(is_chosen, profile.integer),
        intervene=system.trap.intervene,
        arm=lambda: _arm(prepared, code, (*modules, late), beside, snapshots, in_programs),
        fold=next((one.fold for one in (code, beside) if one is not None), lambda: None),
        replays=replays_of(system, profile),
        snapshots=snapshots,
    )
    surroundings, door = _with_debugger(surroundings, prepared, snapshots, system, loaded, sites, warn)
    inlines = inline_clauses(prepared, sites, stacks, rules, memory, loaded.bias)
    log = None if watched is None else _log(prepared, system, watched, symbols, warn)
    return Guest(
        *(prepared, system, loaded, code, surroundings, inlines),
        snapshots=snapshots,
        beside=beside,
        late=late,
        log=log,
        debugger=door,
        covering=covering,
        warn=warn,
        link_address=lambda address: moved.original(address) - loaded.bias,
    )


def _covering(prepared: Prepared, system: System, first: PlacedImage, beside: BesideImages | None) -> "Covering | None":
    """What counts blocks for --coverage."""
    if prepared.request.coverage is None:
        return None
    from kinst.runtime.tracing.guests.covering import Covering

    images = PlacedImages([first], system.space.observe) if beside is None else beside.placed(first)
    return Covering(system, images, prepared.request.coverage)


def _both_of(
    change: Callable[[Sequence[KernelModule]], None], forget: Callable[[], None]
) -> Callable[[Sequence[KernelModule]], None]:
    def changed(modules: Sequence[KernelModule]) -> None:
        change(modules)
        forget()

    return changed


def _both(first: Callable[[], None], second: Callable[[], None] | None) -> Callable[[], None]:
    if second is None:
        return first

    def both() -> None:
        first()
        second()

    return both


def _register(
    providers: Providers,
    host: GuestHost,
    types: ImageTypes,
    modules: "Sequence[SiteTable]",
    beside: BesideImages | None,
) -> None:
    """Add the probes of all that is, or comes to be, in memory besides the first image."""
    for module in modules:
        register_module(providers, module, host, types)
    for one in () if beside is None else beside.images:
        if one.code is not None:
            register_image(providers, one.code.sites, one.loaded, host, one.prepared.image.types)


def _rules(prepared: Prepared, loaded: Loaded, moved: MovedImage) -> FrameRules:
    """How to unwind an image without sites."""
    return FrameRules(prepared.image.facts, prepared.program, lambda address: moved.original(address) - loaded.bias)


def _views(
    first: PlacedImage, beside: BesideImages | None
) -> tuple[Rules, Symbols, Mapping[str, Callable[[int, int], int]]]:
    """How to unwind code in the machine, its names, and where variables of other images than the first are."""
    if beside is None:
        return first.rules, first.symbols, {}
    images = beside.placed(first)
    return PlacedRules(images), PlacedSymbols(images), images.locators


def _watched(
    prepared: Prepared, system: System, loaded: Loaded, types: ImageTypes, providers: Providers, plug_ins: PlugIns
) -> "MachineHost | None":
    """The machine as providers and --log watch it, with the wanted ones of those providers; None: nobody does."""
    wanted = any(map(plug_ins.is_wanted, WATCHING)) or plug_ins.mapping_events is not None
    if prepared.request.log is None and not wanted:
        return None
    from kinst.runtime.tracing.host.machine_host import MachineHost, register_machine_providers

    host = MachineHost(system, loaded, types)
    register_machine_providers(providers, host, plug_ins.is_wanted)
    return host


def _register_in_programs(
    known: Known,
    profile: GuestProfile,
    system: System,
    watched: "MachineHost | None",
    plug_ins: PlugIns,
    providers: Providers,
    files: GuestFiles,
    is_chosen: Chosen | None,
    warn: Callable[[str], None],
) -> "UserCode | None":
    """Add the probes of the guest's user space, if they are wanted."""
    events = plug_ins.mapping_events
    if events is None or watched is None:
        return None
    from kinst.runtime.tracing.host.user_machine import UserMachine, register_in_programs

    machine = UserMachine(system, watched, known, profile, warn)
    return register_in_programs(providers, machine, events, files, plug_ins.is_wanted, is_chosen)


def _with_debugger(
    surroundings: Surroundings,
    prepared: Prepared,
    snapshots: GuestSnapshots,
    system: System,
    loaded: Loaded,
    sites: "SiteTable | None",
    warn: Callable[[str], None],
) -> tuple[Surroundings, "Debugger | None"]:
    """What clauses can see, and the door of --gdb; None: there is none."""
    address = prepared.request.gdb
    if address is None:
        return surroundings, None
    from kinst.runtime.tracing.guests.debugging import Debugging
    from kinst.runtime.tracing.guests.rewinding import Rewinding
    from kinst.runtime.tracing.guests.traced_again import TracedProbes

    rewinding = Rewinding(prepared, system, snapshots, TracedProbes(surroundings.providers, sites, warn))
    debugging = Debugging(address, system, loaded, warn, rewinding, snapshots)
    debugging.know(surroundings.providers, sites)
    return debugging.joined(surroundings), debugging.debugger


def _log(
    prepared: Prepared, system: System, watched: "MachineHost", symbols: Symbols, warn: Callable[[str], None]
) -> "EventLog | None":
    if prepared.request.log is None:
        return None
    from kinst.runtime.tracing.guests.event_log import EventLog

    return EventLog(prepared.request.log, system, watched, lambda pc: symbols.describe(pc, "stack"), warn)


def _arm(
    prepared: Prepared,
    code: PatchedCode | None,
    modules: Sequence[ModuleSites | GuestModules],
    beside: BesideImages | None,
    snapshots: GuestSnapshots,
    in_programs: "UserCode | None",
) -> None:
    """Write the breakpoints when a run begins. Only now is an image refused that cannot boot: -l and --call work with
    any."""
    if prepared.call is None:
        refuse_program(prepared.original)
    snapshots.before_arming()
    if code is not None:
        code.arm()
    snapshots.armed()
    for one in (*modules, *(() if beside is None else beside.images)):
        one.arm()
    if in_programs is not None:
        in_programs.look_again()


def _loaded(prepared: Prepared, system: System) -> Loaded:
    """The image in the machine's memory. The trampolines of a patched file are not loaded: `SiteTable` maps them."""
    manifest, request = prepared.manifest, prepared.request
    skip = None
    if manifest is not None and manifest.standalone is None and prepared.planned.plan is None:
        skip = manifest.trampolines[0] if manifest.trampolines[1] else None  # no trampolines: only --patch was used
    if prepared.call is not None:
        return load_for_call(prepared.image, system, skip=skip)
    seed = request.configuration.kaslr_seed
    patches = () if manifest is None else manifest.patches
    loaded = load_image(prepared.image, prepared.facts, system.memory, skip=skip, kaslr_seed=seed, patches=patches)
    system.files.write(loaded, system.memory)
    return loaded


def _write_jumps(prepared: Prepared, system: System, loaded: Loaded) -> None:
    """Write the jumps and trampolines of --method jump into memory. The image is relocated by now: relocations at these
    bytes would otherwise be applied to the jumps."""
    plan = prepared.planned.plan
    for address, code in () if plan is None else contents(plan):
        place = loaded.physical(address)
        if place is None:  # what is loaded may be decided by a Multiboot header, and not by the segments
            raise MachineError(f"{prepared.path}: its loader leaves out {address:#x}, and with it --method jump's code")
        system.memory.write(place, code)


def _patched_code(
    prepared: Prepared, system: System, loaded: Loaded, warn: Callable[[str], None]
) -> PatchedCode | None:
    manifest, plan = prepared.manifest, prepared.planned.plan
    if manifest is None:
        return None
    trampolines = trampoline_code(loaded, manifest) if plan is None else plan.trampolines.tobytes()
    code = PatchedCode(Patched(manifest, loaded, trampolines), system, prepared.program, warn)
    others = (one.manifest for one in prepared.beside)
    code.begin(may_watch=not any(other is not None and other.is_deferred.any() for other in others))
    return code


def _moved(system: System, loaded: Loaded) -> MovedImage:
    """Where an image without sites is, with the copies that it makes of itself."""
    distances = [loaded.bias]
    find = OwnCopies(loaded, system.memory, system.space.observe).finder(lambda: distances, distances.append)
    return MovedImage(loaded.image, lambda: distances, find)


def _contexts(system: System, stacks: MachineStacks, size: int | None) -> Contexts:
    """How the guest's threads are told apart where no operating system is known: by their stacks."""
    observe, sp = system.space.observe, system.arch.stack_pointer

    def where(interrupt: Interrupt) -> Firing:
        system.engine.frame.read()
        system.engine.frame.regs[sp] = interrupt.sp
        return blank_firing(system.trap.firing.frame, system.current.number, 0, site=interrupt.pc)

    return Contexts(
        StackRegions(lambda address: observe(address) is not None, size),
        sp,
        stacks.reach,
        where,
        lambda begun, ended: Interrupts(system, begun, ended).drop,
    )
