"""A guest with an image, or none -> what clauses can see besides their own program, and how to run it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kinst.rewriter.rewriting import Opened
from kinst.runtime.execution.call_instructions import CallInstructions
from kinst.runtime.execution.caller_frames import CallerFrames
from kinst.runtime.execution.entry_values import EntryValues
from kinst.runtime.execution.environment import GuestProfile, Memory, Stacks, Symbols
from kinst.runtime.execution.guest_memory import GuestMemory, no_guest
from kinst.runtime.execution.locations import Machine
from kinst.runtime.execution.no_guest import NoStacks, NoSymbols
from kinst.runtime.execution.profiles import BareProfile, Guest, profile_for, user_mode
from kinst.runtime.execution.scratch import Scratch
from kinst.runtime.execution.stacks import MachineStacks
from kinst.runtime.execution.symbols import ImageSymbols
from kinst.runtime.execution.unmapped_image import with_unmapped_image
from kinst.runtime.execution.unwind_registry import stack_effects
from kinst.runtime.host import GuestHost, Host, NoGuest
from kinst.runtime.inline_clauses import InlineClauses
from kinst.runtime.providers.dtrace import DtraceProvider
from kinst.runtime.providers.profile import ProfileProvider
from kinst.runtime.providers.provider import Providers
from kinst.runtime.session import Session, Wanted
from kinst.runtime.system import ClockKind, End
from kinst.targets.c_types import ImageTypes

_SCRATCH: Final = 16 << 20  # bytes that one clause may use
_NO_IMAGE_ARCH: Final = "amd64"  # whose types and R_ names a program without an image has


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
    profile: GuestProfile
    reasons: Mapping[str, str]  # why a description patches nothing
    inlines: InlineClauses | None  # descriptions that mean inlined copies; None: there is no guest
    session: Session | None  # None: there is no guest
    run: Callable[[Callable[[bytes], None]], End]  # to the end; the guest's console goes to the callable
    arm: Callable[[], None]  # let memory have the breakpoints of what is enabled
    on_turn: Callable[[Callable[[], None]], None]  # have a callable called now and then, between instructions


def without_guest(clock: ClockKind, timeout: float | None = None) -> Surroundings:
    """For programs that need no image; `timeout` is in seconds."""
    host = NoGuest(clock, _NO_IMAGE_ARCH)
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
        profile=BareProfile(""),
        reasons={},
        inlines=None,
        session=None,
        run=lambda _console: host.machine.run(None if timeout is None else int(timeout * 1e9)),
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
    observe = with_unmapped_image(system.space.observe, loaded.segments)
    memory = GuestMemory(scratch, observe, system.space.observe_write, system.memory)
    session.plug_in(memory)
    original = loaded.image if opened is None else opened.program.image
    moved = session.original_address
    symbols = ImageSymbols(original, bias=loaded.bias, moved=moved)
    is_user = user_mode(system.arch, lambda: system.engine.live.get("priv"))
    guest = Guest(wanted.image.name, system.arch, types, memory, is_user, loaded.bias)
    profile = profile_for(guest)
    host.user_mode = is_user
    stacks = MachineStacks(
        system.arch, memory, lambda: session.opened.program, bias=loaded.bias, moved=moved, is_user=is_user
    )

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
        profile=profile,
        reasons=session.reasons,
        inlines=session.inline_clauses(_locations(session, stacks, memory)),
        session=session,
        run=session.run_machine,
        arm=session.arm,
        on_turn=on_turn,
    )


def _locations(session: Session, stacks: MachineStacks, memory: Memory) -> Machine:
    """How the arguments of inlined copies are found."""
    arch, bias = session.system.arch, session.loaded.bias
    effects = stack_effects(arch.name)
    frames = CallerFrames(arch, effects, stacks.unwinder, memory, bias=bias, moved=session.original_address)
    instructions = CallInstructions(lambda: session.opened.program)
    entries = EntryValues(frames, memory, instructions, session.call_sites, bias=bias)
    return Machine(effects.dwarf_registers, stacks.frame_address, memory.read, bias, entries.of_firing)
