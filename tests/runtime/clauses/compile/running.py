"""Run hand-made checked clauses: an environment of known answers, with the real buffers and aggregations."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kinst.runtime.clauses.aggregations import AggregationStore
from kinst.runtime.clauses.buffers import Buffers
from kinst.runtime.clauses.compile.clause import compile_clause
from kinst.runtime.clauses.environment import Record, Stack, SymbolName, TaskState
from kinst.runtime.clauses.guest.guest_memory import GuestMemory
from kinst.runtime.clauses.scratch import Scratch
from kinst.runtime.clauses.speculations import Speculations
from kinst.runtime.clauses.state import State
from kinst.runtime.dlang import program
from kinst.runtime.dlang.check.checker import Checker
from kinst.runtime.dlang.context import CheckContext, MatchedProbes
from kinst.runtime.dlang.options import Options
from kinst.runtime.dlang.syntax.cursor import Names
from kinst.runtime.dlang.syntax.errors import Span
from kinst.runtime.dlang.syntax.macros import Macros
from kinst.runtime.dlang.syntax.parser import parse
from kinst.runtime.dlang.syntax.sugar import expand
from kinst.runtime.dlang.types.types import CHAR, INT, LONG, STRING, DType
from kinst.runtime.providers.provider import Argument, Probe
from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.runtime.trap.trap_frame import TrapFrame
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.arch.registry import arch_by_name
from kinst.targets.c_types import NoImageTypes, Pointer
from kinst.targets.errors import MachineError

SPAN = Span("", 1, 1, 1, "")
GUEST = 0x1000  # where the guest's memory is: two pages of RAM, then one of a device, then nothing
OPTIONS = {
    "strsize": 256,
    "dynvarsize": 1 << 20,
    "stackframes": 20,
    "ustackframes": 20,
}


@dataclass
class Ram:
    data: bytearray = field(default_factory=lambda: bytearray(8192))

    def load(self, address: int, size: int) -> int:
        return int.from_bytes(self.read(address, size), "little")

    def read(self, address: int, size: int) -> bytes:
        if not GUEST <= address <= GUEST + len(self.data) - size:
            raise MachineError("no RAM")
        return bytes(self.data[address - GUEST : address - GUEST + size])

    def write(self, address: int, data: bytes) -> None:
        self.read(address, len(data))
        self.data[address - GUEST : address - GUEST + len(data)] = data


def mapped(address: int) -> int | None:
    return address if GUEST <= address < GUEST + 3 * 4096 else None


class Profile:
    description = "the CPU"
    has_user_mode = True

    def begin(self, forget: Callable[[int], None]) -> None:
        pass

    def ranges(self, changed: Callable[[], None]) -> None:
        return None

    def user_registers(self, firing: Firing) -> Sequence[int] | None:
        return [number + 1000 for number in firing.regs] if self.has_user_mode else None

    def interrupted(self, sp: int) -> Sequence[int] | None:
        return None

    def tasks(self) -> Sequence[TaskState]:
        return ()

    def why_not(self, name: str) -> str:
        return ""

    def thread(self, firing: Firing) -> int:
        return firing.thread

    def integer(self, firing: Firing, name: str) -> int:
        return {"pid": 42, "errno": (1 << 32) - 5, "curthread": 0xFFFF_8000_0000_1000}.get(name, 0)

    def string(self, firing: Firing, name: str) -> bytes:
        return {"execname": b"kernel.elf"}.get(name, b"x" * 300)

    def is_user(self, firing: Firing) -> bool:
        return False


class Stacks:
    def stack(self, firing: Firing, frames: int) -> tuple[int, ...]:
        return tuple(range(0x100, 0x100 + min(frames, 30)))

    def depth(self, firing: Firing) -> int:
        return 30

    def caller(self, firing: Firing) -> int:
        return 0xFFFF_FFFF_8000_0000


class UserStacks:
    def stack(self, firing: Firing, frames: int) -> tuple[int, ...]:
        return (1, 2, 3)[:frames]

    def caller(self, firing: Firing) -> int:
        return 2


class UserSymbols:
    def stack(self, addresses: tuple[int, ...], frames: int, process: int) -> Stack:
        return Stack(addresses, frames, is_user=True, process=process, names=tuple(f"f+{one}" for one in addresses))

    def symbol(self, address: int, kind: str, process: int) -> SymbolName:
        return SymbolName(kind, address & ~0xFF, process, f"{kind} f")


class Symbols:
    def object_start(self, address: int, kind: str) -> int:
        return address & ~0xFFF

    def describe(self, address: int, kind: str) -> str:
        return f"{address:#x}"


class Environment:
    """One CPU's worth of answers; what clauses do to the session is kept in lists."""

    def __init__(self, options: Mapping[str, int] | None = None, *, records_time: bool = False) -> None:
        self.options = {**OPTIONS, **(options or {})}
        self.ram = Ram()
        self.scratch = Scratch(4 << 20)
        self.memory = GuestMemory(self.scratch, mapped, mapped, self.ram)
        self.profile, self.stacks, self.symbols = Profile(), Stacks(), Symbols()
        self.user_stacks, self.user_symbols = UserStacks(), UserSymbols()
        self.locate = lambda link, _site: link
        self.locate_beside: dict[str, Callable[[int, int], int]] = {}
        self.arch: ArchFacts = arch_by_name("amd64")
        self.records_time = records_time
        self.target: Callable[[Firing], int] = lambda _firing: 4711
        self.time = 1_000
        self.exits: list[int] = []
        self.faults: list[tuple[int, int, Fault]] = []
        self.acts: list[tuple[str, int]] = []
        self.snapshots: list[bytes] = []

    def uses_profile(self, name: str) -> None:
        pass

    def now(self) -> int:
        self.time += 7
        return self.time

    def wall(self) -> int:
        return 1_600_000_000_000_000_000 + self.now()

    def probe(self, identifier: int) -> Probe | None:
        return Probe(identifier, "fbt", "kernel", "m" * 300, "entry") if identifier == 5 else None

    def arguments(self, identifier: int) -> Sequence[Argument] | None:
        return None

    def option(self, name: str) -> int:
        return self.options[name]

    def exit(self, status: int) -> None:
        self.exits.append(status)

    def fault(self, firing: Firing, clause: int, action: int, fault: Fault) -> None:
        self.faults.append((clause, action, fault))

    def epid(self, clause: int, probe: int) -> int:
        return clause * 100 + probe

    def snapshot(self, name: bytes) -> None:
        self.snapshots.append(name)

    def destructive(self, firing: Firing, kind: str, argument: int) -> None:
        self.acts.append((kind, argument))


class Bench:
    """A session of clauses made by hand."""

    def __init__(
        self,
        options: Mapping[str, int] | None = None,
        *,
        records_time: bool = False,
    ) -> None:
        self.environment = Environment(options, records_time=records_time)
        self.buffers = Buffers(None, "switch", lambda: None)
        self.speculations = Speculations(2, 1024, self.buffers)
        self.aggregations = AggregationStore(None)
        self.state = State(
            self.environment,
            self.buffers,
            self.speculations,
            self.aggregations,
            self.environment.scratch,
        )
        self.count = 0
        self.arguments: tuple[int, ...] = (1, 2, 3)
        regs = list(range(100, 100 + len(self.environment.arch.registers)))
        frame = TrapFrame(regs, lambda _address, _size: 0, lambda *_: None, lambda *_: None)
        self.firing = Firing(frame, Enabling(5, lambda _firing: None, self._argument, 0))

    def _argument(self, _firing: Firing, index: int) -> int:
        return self.arguments[index] if index < len(self.arguments) else 0

    def compile(
        self, *actions: program.Action, predicate: program.Expression | None = None, size: int = 16
    ) -> Callable[[], None]:
        """A clause ready to fire."""
        numbers = tuple(range(1, len(actions) + 1))
        clause = program.Clause("fbt:::", predicate, actions, numbers, SPAN, size)
        compiled = compile_clause(clause, self.count, self.state, self.environment)
        self.count += 1
        return lambda: compiled(self.firing)

    def run(self, *actions: program.Action, predicate: program.Expression | None = None) -> list[Any]:
        """The values that a clause recorded, of one firing."""
        self.compile(*actions, predicate=predicate)()
        return [record[4] for record in self.records()]

    def records(self) -> list[Record]:
        return [entry for entry in self.buffers.take() if isinstance(entry, tuple)]

    def value(self, expression: program.Expression) -> Any:
        """What an expression traces; a fault is raised."""
        found = self.run(program.Trace(expression))
        if self.environment.faults:
            raise self.environment.faults.pop()[2]
        return found[0][0]


def number(value: int, kind: DType = LONG) -> program.Integer:
    return program.Integer(kind, value)


def text(value: bytes) -> program.Text:
    return program.Text(STRING, value)


def argument(index: int) -> program.Builtin:
    return program.Builtin(LONG, f"arg{index}")


def binary(
    operator: str, left: program.Expression, right: program.Expression, kind: DType = LONG, *, is_signed: bool = True
) -> program.Binary:
    return program.Binary(kind, operator, left, right, is_signed, SPAN)


def variable(scope: program.Scope, name: str, kind: DType = LONG, *keys: DType) -> program.Variable:
    return program.Variable(scope, name, kind, keys or None)


def read(of: program.Variable, *keys: program.Expression) -> program.Read:
    return program.Read(of.type, of, keys)


def assign(target: program.Read | program.Load, value: program.Expression) -> program.Evaluate:
    return program.Evaluate(program.Assign(target.type, target, value))


def update(
    target: program.Read | program.Load, operator: str, value: program.Expression, *, gives_old: bool = False
) -> program.Update:
    return program.Update(target.type, target, operator, value, gives_old, is_signed=True, span=SPAN)


COUNT = program.Aggregation(1, "_", program.AggregatingFunction.COUNT, ())
ZERO = number(0, INT)


class AnyProbe:
    """Every description matches one probe with two arguments."""

    def match(self, description: str) -> MatchedProbes:
        return MatchedProbes(description, 1, (LONG, Pointer(CHAR)))


class Script:
    """Programs as text, read by the real front end; all clauses fire one after the other."""

    def __init__(self, *texts: str, options: Mapping[str, int] | None = None) -> None:
        self.bench = Bench(options)
        settings = Options()
        for name, value in self.bench.environment.options.items():
            if (options or {}).get(name) is not None:
                settings.set(name, str(value))
        checker = Checker(CheckContext(self.bench.environment.arch, NoImageTypes(), AnyProbe(), settings))
        self.clauses: list[program.Clause] = []
        for content in texts:
            unit = expand(parse(content, names=Names(checker.is_type), macros=Macros(())), adds_error_clause=False)
            self.clauses += checker.check(unit).clauses
        state, environment = self.bench.state, self.bench.environment
        self.compiled = [
            compile_clause(clause, number, state, environment) for number, clause in enumerate(self.clauses)
        ]

    def fire(self) -> list[Any]:
        """The values that one firing recorded, a tuple a record."""
        self.bench.state.begin()
        for compiled in self.compiled:
            compiled(self.bench.firing)
        return [record[4] for record in self.bench.records()]

    @property
    def faults(self) -> list[tuple[int, int, FaultKind]]:
        return [(clause, action, fault.kind) for clause, action, fault in self.bench.environment.faults]
