"""A guest with an image, or none -> what clauses can see besides their own program, and how to run it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from kinst.rewriter.rewriting import Opened
from kinst.runtime.clauses.environment import GuestProfile, Memory, Stacks, Symbols
from kinst.runtime.clauses.guest_memory import GuestMemory, no_guest
from kinst.runtime.clauses.no_guest import NoStacks, NoSymbols
from kinst.runtime.clauses.profiles import BareProfile, Guest, profile_for, user_mode
from kinst.runtime.clauses.scratch import Scratch
from kinst.runtime.clauses.symbols import ImageSymbols
from kinst.runtime.clauses.unmapped_image import with_unmapped_image
from kinst.runtime.machine.configuration import ClockKind, End
from kinst.runtime.machine.interrupts import Interrupt, Interrupts
from kinst.runtime.providers.dtrace import DtraceProvider
from kinst.runtime.providers.profile import ProfileProvider
from kinst.runtime.providers.provider import Providers
from kinst.runtime.tracing.ending import Ending, Outcome, Whereabouts, bare_ending
from kinst.runtime.tracing.host import GuestHost, Host, NoGuest, blank_firing
from kinst.runtime.tracing.inline_clauses import InlineClauses
from kinst.runtime.tracing.session import Session, Wanted, nanoseconds
from kinst.runtime.trap.trap import Firing
from kinst.runtime.unwinding.call_instructions import CallInstructions
from kinst.runtime.unwinding.caller_frames import CallerFrames
from kinst.runtime.unwinding.contexts import Contexts
from kinst.runtime.unwinding.entry_values import EntryValues
from kinst.runtime.unwinding.locations import Machine
from kinst.runtime.unwinding.stack_regions import StackRegions, stack_size
from kinst.runtime.unwinding.stacks import MachineStacks
from kinst.targets.c_types import ImageTypes
from kinst.targets.image import Image

_SCRATCH: Final = 16 << 20  # bytes that one clause may use
NO_IMAGE_ARCH: Final = "amd64"  # whose types and R_ names a program without an image has


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a run stands in."""

    host: Host
    providers: Providers
    dtrace: DtraceProvider
    scratch: Scratch
    memory: Memory
    stacks: Stacks
    symbols: Symbols
    locate: Callable[[int, int], int]  # a link address, for the code at another address -> where it is now
    profile: GuestProfile
    contexts: Contexts | None  # whose self-> variables are; None: the CPU's, without a guest
    reasons: Mapping[str, str]  # why a description patches nothing
    inlines: InlineClauses | None  # descriptions that mean inlined copies; None: there is no guest
    session: Session | None  # None: there is no guest
    ending: Callable[[Outcome], Ending]  # what there is to tell of a run that is over
    run: Callable[[Callable[[bytes], None]], End]  # to the end; the guest's console goes to the callable
    arm: Callable[[], None]  # let memory have the breakpoints of what is enabled
    on_turn: Callable[[Callable[[], None]], None]  # have a callable called now and then, between instructions


def without_guest(clock: ClockKind, timeout: float | None = None, wall_timeout: float | None = None) -> Surroundings:
    """For programs that need no image; timeouts are in seconds."""
    host = NoGuest(clock, NO_IMAGE_ARCH)
    dtrace = DtraceProvider()
    providers = Providers([dtrace, ProfileProvider(host)])
    scratch = Scratch(_SCRATCH)

    def on_turn(callback: Callable[[], None]) -> None:
        host.machine.after_turn = callback

    return Surroundings(
        host=host,
        providers=providers,
        dtrace=dtrace,
        scratch=scratch,
        memory=no_guest(scratch),
        stacks=NoStacks(),
        symbols=NoSymbols(),
        locate=lambda link, _site: link,
        profile=BareProfile(""),
        contexts=None,
        reasons={},
        inlines=None,
        session=None,
        ending=bare_ending,
        run=lambda _console: host.machine.run(nanoseconds(timeout), nanoseconds(wall_timeout)),
        arm=lambda: None,
        on_turn=on_turn,
    )


def with_guest(wanted: Wanted, opened: Opened | None, types: ImageTypes) -> Surroundings:
    """For the image that `wanted` names; `opened` is what it holds, where programs need its names."""
    session = Session(wanted, opened, types)
    system, loaded = session.system, session.loaded
    host = GuestHost(system)
    session.providers.register(ProfileProvider(host))
    scratch = Scratch(_SCRATCH)
    observe = with_unmapped_image(system.space.observe, loaded.segments, system.space.stage)
    memory = GuestMemory(scratch, observe, system.space.observe_write, system.memory)
    session.plug_in(memory)
    original = loaded.image if opened is None else opened.program.image
    moved = session.moved.original
    symbols = ImageSymbols(original, lambda: session.opened.program.functions, bias=loaded.bias, moved=moved)
    is_user = user_mode(system.arch, system.engine.live.get)
    host.user_mode = is_user
    stacks = MachineStacks(
        system.arch, memory, lambda: session.opened.program, bias=loaded.bias, moved=moved, is_user=is_user
    )
    contexts = _contexts(session, stacks, original)
    guest = Guest(wanted.image.name, system.arch, types, memory, is_user, contexts.thread, loaded.bias)
    profile = profile_for(guest)

    def on_turn(callback: Callable[[], None]) -> None:
        system.after_turn = callback

    return Surroundings(
        host=host,
        providers=session.providers,
        dtrace=session.dtrace,
        scratch=scratch,
        memory=memory,
        stacks=stacks,
        symbols=symbols,
        locate=session.moved.locate,
        profile=profile,
        contexts=contexts,
        reasons=session.reasons,
        inlines=session.inline_clauses(_locations(session, stacks, memory)),
        session=session,
        ending=partial(Whereabouts(system, loaded, symbols).ending, is_verbose=wanted.tells_more),
        run=session.run_machine,
        arm=session.arm,
        on_turn=on_turn,
    )


def _contexts(session: Session, stacks: MachineStacks, image: Image) -> Contexts:
    """What stands for the guest's threads."""
    system = session.system
    observe, sp = system.space.observe, system.arch.stack_pointer

    def where(interrupt: Interrupt) -> Firing:
        system.engine.frame.read()
        firing = blank_firing(system.trap.firing.frame, system.current.number, 0)
        system.engine.frame.regs[sp], firing.site = interrupt.sp, interrupt.pc
        return firing

    return Contexts(
        StackRegions(lambda address: observe(address) is not None, stack_size(image.symbols)),
        sp,
        stacks.reach,
        where,
        lambda begun, ended: Interrupts(system, begun, ended).drop,
    )


def _locations(session: Session, stacks: MachineStacks, memory: Memory) -> Machine:
    """How the arguments of inlined copies are found."""
    arch, bias = session.system.arch, session.loaded.bias
    frames = CallerFrames(arch, stacks.rules, memory)
    instructions = CallInstructions(lambda: session.opened.program)
    entries = EntryValues(frames, memory, instructions, session.call_sites, bias=bias)
    return Machine(arch.unwind.dwarf_registers, stacks.frame_address, memory.read, bias, entries.of_firing)
