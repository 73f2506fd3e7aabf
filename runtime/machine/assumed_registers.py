"""System registers of a CPU whose bits nobody knows here: they read as what was written, and it is noted who asked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

_MOST_PLACES: Final = 16  # of a register's accesses that are remembered


@dataclass(slots=True, eq=False)
class AssumedRegister:
    """A register that was accessed, of all CPUs together. `places`: PCs of the accesses, with how often."""

    name: str
    value: int = 0  # that was read or written last
    reads: int = 0
    writes: int = 0
    places: dict[int, int] = field(default_factory=dict)


Watcher = Callable[[AssumedRegister, int, bool], None]  # the register, the PC, whether it is written


class AssumedRegisters:
    """Those of a machine."""

    def __init__(self) -> None:
        """Nothing was accessed: all are 0."""
        self._registers: dict[str, AssumedRegister] = {}
        self._values: dict[tuple[int, str], int] = {}  # each CPU has its own
        self._watcher: Watcher | None = None

    @property
    def touched(self) -> list[AssumedRegister]:
        """The registers that were accessed, by name."""
        return sorted(self._registers.values(), key=lambda one: one.name)

    def state(self) -> dict[tuple[int, str], int]:
        """Their values, for a snapshot: by CPU and name."""
        return dict(self._values)

    def restore(self, state: Mapping[tuple[int, str], int]) -> None:
        """Let them have the values that `state` gave. Who asked for them stays as it is."""
        self._values = dict(state)

    def watch(self, watcher: Watcher) -> None:
        """Call `watcher` with each access from now on."""
        self._watcher = watcher

    def read(self, cpu: int, name: str, pc: int) -> int:
        """Read a CPU's register."""
        register, value = self._note(name, pc), self._values.get((cpu, name), 0)
        register.reads += 1
        register.value = value
        if self._watcher is not None:
            self._watcher(register, pc, False)  # noqa: FBT003 - a `Watcher`
        return value

    def write(self, cpu: int, name: str, pc: int, value: int) -> None:
        """Write a CPU's register."""
        register = self._note(name, pc)
        register.writes += 1
        register.value = self._values[cpu, name] = value
        if self._watcher is not None:
            self._watcher(register, pc, True)  # noqa: FBT003

    def _note(self, name: str, pc: int) -> AssumedRegister:
        register = self._registers.setdefault(name, AssumedRegister(name))
        if pc in register.places or len(register.places) < _MOST_PLACES:
            register.places[pc] = register.places.get(pc, 0) + 1
        return register
