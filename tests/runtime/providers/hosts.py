"""Small hosts for providers, without a machine."""

from collections.abc import Sequence

import numpy as np

from kinst.runtime.machine.device import Timed
from kinst.runtime.providers.probe_table import Identifiers
from kinst.runtime.providers.provider import Action, Argument, Probes, Registration
from kinst.runtime.providers.stability import EVOLVING, PRIVATE, ProviderAttributes
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.runtime.trap.trap_frame import TrapFrame
from kinst.targets.probe import ProbeName

ATTRIBUTES = ProviderAttributes(EVOLVING, PRIVATE, PRIVATE, EVOLVING, PRIVATE)


def firing_of(*regs: int) -> Firing:
    """A firing with these registers and no memory."""
    frame = TrapFrame(list(regs), lambda _a, _s: 0, lambda _a, _s, _v: None, lambda _n, _v: None)
    return Firing(frame, Enabling(0, lambda _firing: None, lambda _firing, _index: 0, 0))


def ids(*numbers: int) -> Identifiers:
    """Identifiers as providers get them."""
    return np.array(numbers, np.intp)


class Clock:
    """A `TimerHost` whose time and CPUs the test sets."""

    def __init__(self, cpus: Sequence[int] = (0,)) -> None:
        self.time = 0
        self.on = list(cpus)
        self.user: set[int] = set()  # CPUs in user mode
        self.timed: list[Timed] = []

    def now(self) -> int:
        return self.time

    def attach(self, timed: Timed) -> None:
        self.timed.append(timed)

    def cpus(self) -> Sequence[int]:
        return self.on

    def firing(self, cpu: int, thread: int) -> Firing:
        firing = firing_of()
        firing.cpu, firing.thread, firing.site = cpu, thread, 0x1000 + cpu
        return firing

    def is_user(self, firing: Firing) -> bool:
        return firing.cpu in self.user

    def go(self, until: int) -> None:
        """Let time pass, stopping at every deadline."""
        while True:
            deadlines = [found for timed in self.timed if (found := timed.deadline()) is not None]
            self.time = max(self.time, min([until, *deadlines]))
            for timed in self.timed:
                timed.advance()
            if self.time >= until:
                return


class Toy:
    """A provider that keeps what it is told."""

    def __init__(self, name: str = "toy", probes: Sequence[tuple[str, str, str]] = ()) -> None:
        self.registration = Registration(name, ATTRIBUTES)
        self.initial = probes
        self.probes: Probes | None = None
        self.actions: dict[int, Action] = {}
        self.destroyed: list[int] = []
        self.asked: list[ProbeName | None] = []

    def provide(self, probes: Probes, wanted: ProbeName | None) -> None:
        self.asked.append(wanted)
        self.probes = probes
        if wanted is None:
            for fields in self.initial:
                probes.create(*fields)
        elif wanted.name.startswith("on-demand") and probes.lookup("", "", wanted.name) is None:
            probes.create("", "", wanted.name)

    def enable(self, identifiers: Identifiers, action: Action) -> None:
        self.actions.update(dict.fromkeys(identifiers.tolist(), action))

    def disable(self, identifiers: Identifiers) -> None:
        for identifier in identifiers.tolist():
            del self.actions[identifier]

    def destroy(self, identifiers: Identifiers) -> None:
        self.destroyed += identifiers.tolist()


class TypedToy(Toy):
    """One with arguments."""

    def arguments(self, identifier: int) -> Sequence[Argument] | None:
        return (Argument("int"), Argument("struct callout *", 0, "uintptr_t")) if identifier % 2 else None

    def argument(self, firing: Firing, index: int) -> int:
        return index
