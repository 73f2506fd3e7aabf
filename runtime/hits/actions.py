"""What the probes of a site do, and how hits may be delivered to it."""

from collections.abc import Callable, MutableSequence, Sequence
from typing import Final, Protocol

from kinst.runtime.hits.replayed import Replay
from kinst.runtime.trap.delivery import Delivery, Way
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.targets.values import dataclass

_CALLED: Final = Delivery(Way.DISPATCH, "a function in Python is called there")


@dataclass(frozen=True, slots=True)
class Reads:
    """What an action reads, besides the CPU: arguments by number, and indexes in the trap frame; the time, and the key
    of the thread. What only records have that an image kept: words of the current task, and memory, the stack's too.
    `has_probe` matters only there: elsewhere hits of different probes are never taken together."""

    arguments: frozenset[int] = frozenset()
    registers: frozenset[int] = frozenset()
    has_time: bool = False
    has_thread: bool = False
    has_probe: bool = False
    has_task: bool = False
    has_memory: bool = False

    def __bool__(self) -> bool:
        return bool(self.arguments or self.registers)

    def __or__(self, other: "Reads") -> "Reads":
        return Reads(
            self.arguments | other.arguments,
            self.registers | other.registers,
            self.has_time or other.has_time,
            self.has_thread or other.has_thread,
            self.has_probe or other.has_probe,
            self.has_task or other.has_task,
            self.has_memory or other.has_memory,
        )

    def registers_of(self, enabling: Enabling) -> frozenset[int]:
        """The registers that are read where this is enabled."""
        found = set(self.registers)
        for index in self.arguments:
            registers = enabling.registers(index)
            assert registers is not None, "what is not in registers is dispatched"
            found.update(registers)
        return frozenset(found)


NOTHING: Final = Reads()
# Called with the enabling, the CPU, the number of hits, and the `Firing.regs` that all of them have.
Count = Callable[[Enabling, int, int, MutableSequence[int]], None]


class Additions(Protocol):
    """What actions add to aggregations, until it is known how often it counts."""

    def times(self, hits: int) -> None:
        """Count what was added since the last call so many times."""
        ...

    def keep(self) -> None:
        """Add all that was counted so far."""
        ...

    def drop(self) -> None:
        """Forget what was added since the last `times`."""
        ...


@dataclass(frozen=True, slots=True)
class Alike:
    """What an action that only aggregates does for records of an image: it runs once for those that are equal in what
    it `reads`. `run` raises Fault: each of them has a fault, to be reported in its turn, so they are fired one by one
    instead."""

    reads: Reads
    run: Callable[[Firing], None]
    additions: Additions


def counted_once(count: Count) -> Replay:
    """The replay of a single record of an action that counts."""
    return lambda firing: count(firing.enabling, firing.cpu, 1, firing.frame.regs)


class Dispatched:
    """An action that runs when its probe is hit."""

    __slots__ = ("alike", "delivery", "run")

    def __init__(self, run: Callable[[Firing], None], why: str, alike: Alike | None = None) -> None:
        """`why` it cannot run later; `alike`: see `Batched`."""
        self.run, self.delivery, self.alike = run, Delivery(Way.DISPATCH, why), alike

    def __call__(self, firing: Firing) -> None:
        """Do what a hit does."""
        self.run(firing)


class Batched:
    """An action that may run later than the hit, as long as this cannot be observed: see `kinst.runtime.hits`."""

    __slots__ = ("alike", "count", "delivery", "reads", "replay", "run")

    def __init__(
        self,
        run: Callable[[Firing], None],
        delivery: Delivery,
        reads: Reads,
        replay: Replay,
        count: Count | None = None,
        alike: Alike | None = None,
    ) -> None:
        """`run` is called at a hit that is dispatched after all, `replay` for a record of one; both read what `reads`
        names, and an action that is replayed settles earlier records in `run`. `count` does for several hits in which
        all that is the same what `run` does for each; only what is replayed has none. `alike` is for records that an
        image kept, if it may take them together."""
        assert (delivery.way in (Way.COUNT, Way.RECORD)) == (count is not None)
        self.run, self.delivery, self.reads, self.replay, self.count = run, delivery, reads, replay, count
        self.alike = alike

    def __call__(self, firing: Firing) -> None:
        """Do what a hit does now."""
        self.run(firing)


def counting(run: Callable[[Firing], None], count: Count, reads: Reads = NOTHING) -> Batched:
    """An action that only counts: the number of hits that are alike is all that it needs."""
    return Batched(run, Delivery(Way.RECORD if reads else Way.COUNT), reads, counted_once(count), count)


def delivery_of(action: Callable[[Firing], None]) -> Delivery:
    """How hits may be delivered to an action."""
    return action.delivery if isinstance(action, Batched | Dispatched) else _CALLED


def called_at(action: Callable[[Firing], None]) -> Callable[[Firing], None]:
    """What a site calls at a hit. A dispatched action is unwrapped, which saves each hit a call, unless its hits come
    as records."""
    return action.run if isinstance(action, Dispatched) and action.alike is None else action


def reads_of(action: Callable[[Firing], None]) -> Reads:
    """What must be recorded of a hit for an action that runs later."""
    return action.reads if isinstance(action, Batched) else NOTHING


def alike_of(action: Callable[[Firing], None]) -> Alike | None:
    """What an action does for records that are alike; None: it wants each by itself."""
    return action.alike if isinstance(action, Batched | Dispatched) else None


BatchedRuns = Sequence[tuple[Batched, Enabling]]
