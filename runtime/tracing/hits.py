"""A Python function as the action of probes: what it is given when one fires."""

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Final

from kinst.runtime.clauses.environment import Environment, Stack
from kinst.runtime.clauses.guest.frame_names import frame_names
from kinst.runtime.dlang.builtins import THREADS
from kinst.runtime.providers.provider import Action, Probe
from kinst.runtime.tracing.host.guest_view import GuestView
from kinst.runtime.tracing.interventions import JUMP, OVERRIDE, REGISTER, SKIP, why_not
from kinst.runtime.trap.faults import FAULT_TEXTS, Fault
from kinst.runtime.trap.interventions import Interventions
from kinst.runtime.trap.trap import Firing
from kinst.targets.errors import MachineError, UsageError
from kinst.targets.values import dataclass

if TYPE_CHECKING:
    from kinst.runtime.tracing.typed_values import Arguments
    from kinst.runtime.typed.image_objects import Objects
    from kinst.runtime.typed.objects import Object

TypedValues = Callable[[], "Objects"]  # gives those of an image; raises UsageError: there is none
_WORD: Final = (1 << 64) - 1


class Original(Enum):
    """What a replacement of a function returns to let the function itself run."""

    FUNCTION = "the function itself"


@dataclass(frozen=True, slots=True)
class Place:
    """An address of the guest, and how dtrace shows it: module`function+0x1c."""

    address: int
    symbol: str

    def __str__(self) -> str:
        return self.symbol


class Hit:
    """A probe fires: the state of the CPU before the probed instruction executes.

    `memory` is the guest's, and `regs` has its registers by name, which can be written as well, as can the guest's way
    from here (`override`, `skip`), if the option `destructive` permits it.

    One object serves all hits of an action, and always describes the current one: keep the values that you need, not
    the hit.
    """

    __slots__ = ("_environment", "_firing", "_objects", "memory", "regs")

    def __init__(self, environment: Environment, objects: "TypedValues | None" = None) -> None:
        self._environment, self._objects = environment, objects
        self._firing: Firing | None = None
        self.memory = GuestView(environment.memory)
        self.regs = Registers(self)

    def _now(self) -> Firing:
        if self._firing is None:
            raise UsageError("a hit is over when its action returns: keep the values that you need, not the hit")
        return self._firing

    @property
    def probe(self) -> Probe:
        """The probe, with its provider, module, function and name."""
        probe = self._environment.probe(self.identifier)
        assert probe is not None, "what fires is known"
        return probe

    @property
    def identifier(self) -> int:
        """The probe's identifier: the fastest way to distinguish probes."""
        return self._now().enabling.probe

    @property
    def cpu(self) -> int:
        """The number of the CPU."""
        return self._now().cpu

    @property
    def time(self) -> int:
        """The machine's time in ns: D's timestamp."""
        return self._environment.now()

    @property
    def address(self) -> int:
        """The address of the probed instruction; 0 for a probe without one, such as a timer's."""
        return self._now().site

    def argument(self, index: int) -> int:
        """arg0, arg1, ... as 64 unsigned bits; 0 if the probe has no such argument. Raises MachineError if it is not
        available."""
        try:
            return self._now().argument(index) & _WORD
        except Fault as fault:
            raise MachineError(f"{self.probe}: arg{index}: {fault.text or FAULT_TEXTS[fault.kind]}") from None

    @property
    def objects(self) -> "Objects":
        """The image's variables, functions and types, as typed values: see `Objects`. Raises UsageError: there is no
        image."""
        if self._objects is None:
            raise UsageError("typed values: there is no image whose types they could have")
        return self._objects()

    def __getitem__(self, name: str) -> "Object":
        """A variable or function of the image, as the probed code would refer to it: see `Objects`."""
        return self.objects.at(name, self.address)

    @property
    def args(self) -> "Arguments":
        """D's args[]: the arguments as typed values, as debug information has their types; at a function's return the
        offset and what it returned. They can be kept: what is in registers stays, what they point to is read when it is
        asked for."""
        from kinst.runtime.tracing.typed_values import Arguments  # few actions look at them

        return Arguments(self.objects, self._environment.arguments(self.identifier), self.argument)

    @property
    def curthread(self) -> "Object | None":
        """A pointer to the current thread's struct, D's curthread; NULL before there is one. None: no operating system
        is known in the image, or no type of its threads."""
        address = self._environment.profile.integer(self._now(), "curthread")
        found = (self.objects.pointer(name, address, "curthread") for name in THREADS)
        return next((one for one in found if one is not None), None)

    @property
    def returned(self) -> int:
        """At the return of a function that ended in a tail call: the address that control came back to. Otherwise 0."""
        return self._now().returned

    def register(self, name: str) -> int:
        """A register as 64 unsigned bits, by the name in D's R_..., in lower case: "rdi", "x0", "a0". Raises
        MachineError if it is not known."""
        registers = self._environment.arch.registers
        if name not in registers:
            raise UsageError(f"{name}: no such register; there are {', '.join(registers)}")
        try:
            return self._now().regs[registers.index(name)]
        except Fault as fault:
            raise MachineError(f"{self.probe}: {fault.text}") from None

    def write_register(self, name: str, value: int) -> None:
        """Write a register, of the value its low 64 bits: `hit.regs[name] = value`. The probed instruction sees it.
        Raises MachineError: it cannot be written, or not at this probe."""
        registers = self._environment.arch.registers
        if name not in registers:
            raise UsageError(f"{name}: no such register; there are {', '.join(registers)}")
        is_jump = registers.index(name) == self._environment.arch.pc
        self._intervene(JUMP if is_jump else REGISTER, lambda made: made.write(registers.index(name), value))

    def override(self, value: int | None = None) -> None:
        """Let the function that begins here return at once, with `value` as its result (its low 64 bits) or without
        one: D's override(). Raises MachineError: this is no entry of a function."""
        self._intervene(OVERRIDE, lambda made: made.override(value))

    def original(self) -> Original:
        """What a replacement of a function returns to let the function itself run, with the registers that it has by
        then."""
        return Original.FUNCTION

    def skip(self) -> None:
        """Let the probed instruction not be executed: D's skip(). Raises MachineError: this is no probe of kinst."""
        self._intervene(SKIP, lambda made: made.skip())

    def _intervene(self, what: str, change: Callable[[Interventions], None]) -> None:
        firing = self._now()
        if firing.interventions is None and not self._environment.option("destructive"):
            raise UsageError(f"{what} changes the guest: Options(d={{'destructive': True}}) permits it")
        if why := why_not(what, self.probe):
            raise MachineError(f"{self.probe}: {why}")
        try:
            change(firing.intervene())
        except Fault as fault:
            why = fault.text or f"{FAULT_TEXTS[fault.kind]} {fault.value:#x}"
            raise MachineError(f"{self.probe}: {what}: {why}") from None

    def symbol(self, address: int) -> str:
        """An address in the form in which dtrace shows it."""
        return self._environment.symbols.describe(address, "stack")

    @property
    def caller(self) -> int:
        """The address that the current function returns to; 0 if it is unknown. Raises MachineError if it was not
        recorded."""
        try:
            return self._environment.stacks.caller(self._now())
        except Fault as fault:
            raise MachineError(f"{self.probe}: caller: {fault.text}") from None

    def stack(self, frames: int = 20) -> tuple[Place, ...]:
        """The innermost frames, beginning with that of the probed instruction. Raises MachineError if they were not
        recorded."""
        try:
            found = Stack(self._environment.stacks.stack(self._now(), frames), frames)
        except Fault as fault:
            raise MachineError(f"{self.probe}: stack: {fault.text}") from None
        return tuple(map(Place, found.addresses, frame_names(found, self._environment.symbols)))


class Registers:
    """The registers at a hit by name, as `Hit.register` and `Hit.write_register` have them: `hit.regs["a0"] = 5`."""

    __slots__ = ("_hit",)

    def __init__(self, hit: Hit) -> None:
        self._hit = hit

    def __getitem__(self, name: str) -> int:
        return self._hit.register(name)

    def __setitem__(self, name: str, value: int) -> None:
        self._hit.write_register(name, value)


def replacement(call: Callable[[Hit], object]) -> Callable[[Hit], None]:
    """The action at a function's entry that puts `call` in its place: what it returns is the function's result, as
    `actions_of` documents."""

    def replace(hit: Hit) -> None:
        match call(hit):
            case Original():
                pass
            case None:
                hit.override()
            case int(value):
                hit.override(value)
            case other:
                raise UsageError(f"{hit.probe}: its replacement returned {other!r}: an integer, None or hit.original()")

    return replace


def enclosed(hit: Hit, call: Callable[[Hit], object], is_tracing: Callable[[], bool]) -> Action:
    """The action that a provider performs when a probe fires: `call` with this hit, unless tracing is over."""

    def action(firing: Firing) -> None:
        if is_tracing():  # as clauses do, it ignores hits between exit() and END
            hit._firing = firing
            try:
                call(hit)
            finally:
                hit._firing = None

    return action


@dataclass(frozen=True, slots=True)
class PythonAction:
    """A description of probes, and the function to call when one of them fires. An exception from it ends the run."""

    description: str
    call: Callable[[Hit], object]
    interventions: tuple[str, ...] = ()  # those that it is known to need
