"""What was prepared, and a Qiling object -> the guest of that object with our trap path in it.

Like `kinst.runtime.tracing.guests.building`, for a machine that its owner has made and loaded, and runs.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from kinst.runtime.attached.guest import AttachedGuest
from kinst.runtime.attached.host import AttachedHost
from kinst.runtime.attached.loaded import loaded_image
from kinst.runtime.attached.machine import AttachedMachine
from kinst.runtime.attached.memory import AttachedMemory
from kinst.runtime.attached.profile import AttachedProfile
from kinst.runtime.clauses.guest.guest_memory import GuestMemory
from kinst.runtime.clauses.guest.no_guest import NoUserSymbols
from kinst.runtime.clauses.guest.symbols import ImageSymbols
from kinst.runtime.clauses.scratch import Scratch
from kinst.runtime.engine.attached_engine import AttachedEngine
from kinst.runtime.machine.configuration import End
from kinst.runtime.patched.patched_file import trampoline_code
from kinst.runtime.patched.sites import Patched
from kinst.runtime.providers.dtrace import DtraceProvider
from kinst.runtime.tracing.host.ending import Ending, Outcome, bare_ending
from kinst.runtime.tracing.host.limits import Limits
from kinst.runtime.tracing.host.surroundings import SCRATCH, Surroundings
from kinst.runtime.tracing.images.image_probes import inline_clauses, providers_of
from kinst.runtime.tracing.images.plug_ins import PlugIns
from kinst.runtime.tracing.images.preparing import Prepared
from kinst.runtime.tracing.programs.inline_clauses import InlineClauses
from kinst.runtime.unwinding.frame_rules import FrameRules
from kinst.runtime.unwinding.stacks import MachineStacks
from kinst.targets.c_types import ImageTypes
from kinst.targets.errors import MachineError
from kinst.targets.image import open_to_run
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class Attachment:
    """See `kinst.runtime.tracing.guests.built.Built`."""

    prepared: Prepared
    machine: AttachedMachine
    surroundings: Surroundings
    inlines: InlineClauses
    has_guest: ClassVar = True
    keyboard: ClassVar = None
    answer: ClassVar = ""

    @property
    def exit_code(self) -> int:
        """The exit status, as Qiling's system has it."""
        return self.machine.guest.exit_code

    def go(self, limits: Limits, console: Callable[[bytes], None], after_turn: Callable[[], None]) -> End:
        """Prepare hooks and return: its owner runs it. There are no turns: what is due comes by a timer, between two
        blocks of the guest's code."""
        self.machine.start()
        return End.STOPPED

    def ending(self, outcome: Outcome) -> Ending:
        """The end of tracing; the guest has not ended."""
        return bare_ending(outcome)


class AttachedBuilding:
    """Makes an `Attachment` from what was prepared: a `kinst.runtime.tracing.guests.built.Build`."""

    def __init__(self, ql: Any, bias: int | None) -> None:
        """`bias` is what was added to link addresses; None: search. Raises KinstError: `ql` cannot be traced."""
        self.guest = AttachedGuest(ql)
        self._engine = AttachedEngine(ql, self.guest.arch)
        self._bias = bias
        self._machine: AttachedMachine | None = None

    @property
    def bias(self) -> int:
        """What was added to the image's link addresses."""
        assert self._bias is not None, "the image was found"
        return self._bias

    def undo(self) -> None:
        """Restore the guest as it was before."""
        if self._machine is not None:
            self._machine.release()

    def __call__(
        self, prepared: Prepared, types: ImageTypes, plug_ins: PlugIns, warn: Callable[[str], None]
    ) -> Attachment:
        """Find the image in memory, and install the trap path.

        Raises:
            KinstError: it is not there, or there is no space for trampolines.
        """
        arch = self.guest.arch
        if prepared.image.facts is not arch:
            raise MachineError(f"{prepared.path}: is for {prepared.image.facts.name}, and Qiling emulates {arch.name}")
        memory = AttachedMemory(self._engine, self.guest)
        loaded = loaded_image(open_to_run(prepared.path), self.guest, memory, self._bias)
        self._bias = loaded.bias
        method = None if prepared.manifest is None else prepared.manifest.method
        machine = self._machine = AttachedMachine(self.guest, self._engine, memory, method)
        sites, rules = None, FrameRules(arch, prepared.program, lambda address: address - loaded.bias)
        if prepared.manifest is not None:
            plan = prepared.planned.plan
            code = trampoline_code(loaded, prepared.manifest) if plan is None else plan.trampolines.tobytes()
            sites = machine.patch(Patched(prepared.manifest, loaded, code), rules)
        host = AttachedHost(self.guest, machine.frame, machine.read, machine.timers, machine.end)
        dtrace, scratch = DtraceProvider(), Scratch(SCRATCH)
        providers = providers_of(dtrace, host, sites, loaded, types)
        seen = GuestMemory(scratch, memory.translate, memory.translate, memory)
        plug_ins.register(providers, sites, seen, loaded.bias, host.now)
        stacks = MachineStacks(arch, seen, rules)  # the program is the image and the user: ustack() is stack()
        functions = lambda: prepared.program().functions  # noqa: E731  # the program is decoded when they are needed
        follows_call = rules.unwinder.follows_call
        symbols = ImageSymbols(prepared.original, functions, bias=loaded.bias, follows_call=follows_call)
        surroundings = Surroundings(
            host=host,
            providers=providers,
            dtrace=dtrace,
            scratch=scratch,
            memory=seen,
            stacks=stacks,
            user_stacks=stacks,
            symbols=symbols,
            user_symbols=NoUserSymbols(symbols.object_start),
            locate=lambda link, _site: link + loaded.bias,
            profile=AttachedProfile(self.guest, prepared.path.name),
            intervene=machine.trap.intervene,
            arm=machine.arm,
            fold=machine.fold,
        )
        inlines = inline_clauses(prepared, sites, stacks, rules, seen, loaded.bias)
        return Attachment(prepared, machine, surroundings, inlines)
