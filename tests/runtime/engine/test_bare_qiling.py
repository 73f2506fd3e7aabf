"""Our own machines as a Qiling object: memory, registers, hooks, stopping and snapshots, on the sample kernel."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kinst.runtime.machine.boards.registry import board_of
from kinst.runtime.machine.configuration import ClockKind, Configuration, End
from kinst.runtime.machine.hooks import MachineHooks
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.loading.loader import load_image
from kinst.runtime.machine.system import System
from kinst.targets.arch.registry import NAMES
from kinst.targets.image import open_image
from kinst.targets.machines.registry import default_machine, machine_facts

SAMPLES = Path(__file__).parents[3] / "samples"
MEMORY = 16 << 20
FUNCTION = "rpc_call"


class Machine:
    """The sample kernel in a machine of ours."""

    def __init__(self, arch: str) -> None:
        facts = machine_facts(default_machine(arch))
        self.system = System(facts, board_of(facts.name), Configuration(memory=MEMORY, clock=ClockKind.ICOUNT))
        image = open_image(SAMPLES / f"kernel-{arch}.elf")
        self.loaded: Loaded = load_image(image, facts, self.system.memory)
        self.ql: Any = self.system.engine.ql
        found = image.symbols.address_of(FUNCTION)
        assert found is not None
        self.function = found
        self.console = bytearray()
        self.system.board.start(self.loaded)
        self.system.space.start()

    def run(self) -> End:
        """Run, and keep what is printed."""
        return self.system.run(hooks=MachineHooks(console=self.console.extend))


@pytest.fixture(params=NAMES)
def machine(request: pytest.FixtureRequest) -> Iterator[Machine]:
    """One of each."""
    yield Machine(request.param)


@pytest.fixture(scope="module")
def plain() -> dict[str, bytes]:
    """What the sample prints when nobody looks."""
    consoles = {}
    for arch in NAMES:
        alone = Machine(arch)
        assert alone.run() is End.POWER_OFF
        consoles[arch] = bytes(alone.console)
    return consoles


def test_memory_is_the_machines(machine: Machine) -> None:
    """By physical address, and what is written is what the guest finds."""
    segment = machine.loaded.image.segments[0]
    physical = machine.loaded.segments[0][1]

    assert machine.ql.mem.read(physical, 64) == machine.loaded.image.read(segment.address, 64)
    assert machine.ql.mem.is_mapped(physical, MEMORY // 2)

    machine.ql.mem.write(physical + MEMORY // 2, b"by Qiling")
    assert machine.system.memory.read(physical + MEMORY // 2, 9) == b"by Qiling"


def test_a_hook_sees_registers_and_changes_nothing(machine: Machine, plain: dict[str, bytes]) -> None:
    """A hook at a function."""
    seen = []
    machine.ql.hook_address(lambda ql: seen.append((ql.arch.regs.arch_pc, ql.arch.regs.arch_sp)), machine.function)

    assert machine.run() is End.POWER_OFF
    assert {pc for pc, _ in seen} == {machine.function}
    assert all(sp for _, sp in seen)
    assert bytes(machine.console) == plain[machine.system.arch.name]


def test_a_hook_stops_the_machine_and_it_goes_on(machine: Machine, plain: dict[str, bytes]) -> None:
    """`ql.stop()`."""
    hook = machine.ql.hook_address(lambda ql: ql.stop(), machine.function)

    assert machine.run() is End.STOPPED
    stopped = bytes(machine.console)
    hook.remove()
    assert machine.run() is End.POWER_OFF
    assert bytes(machine.console) == plain[machine.system.arch.name] != stopped


def test_an_error_in_a_hook_ends_the_run(machine: Machine) -> None:
    """Nothing is swallowed."""

    def fail(_ql: object) -> None:
        raise LookupError("in a hook")

    machine.ql.hook_address(fail, machine.function)
    with pytest.raises(LookupError, match="in a hook"):
        machine.run()


def test_a_snapshot_is_gone_back_to(machine: Machine) -> None:
    """Memory and the CPU: what came after it comes a second time."""
    calls = []

    def called(ql: Any) -> None:
        frame = machine.system.engine.frame
        frame.read()
        calls.append([*frame.regs])
        ql.stop()

    machine.ql.hook_address(called, machine.function)
    machine.run()
    snapshot, before = machine.ql.save(reg=False, cpu_context=True), len(machine.console)
    machine.run()
    printed = bytes(machine.console[before:])

    machine.ql.restore(snapshot)
    machine.run()

    first, second, third = calls
    assert first != second == third
    assert machine.console[before:] == printed + printed


def test_its_owner_runs_it(machine: Machine) -> None:
    """Time, devices and the other CPUs would stand still."""
    with pytest.raises(RuntimeError, match="run by the guest"):
        machine.ql.run()
