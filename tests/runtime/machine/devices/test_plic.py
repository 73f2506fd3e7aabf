"""The PLIC: priorities, thresholds, claim and complete, several contexts."""

from kinst.runtime.machine.devices.riscv.plic import Plic
from tests.runtime.machine.devices.bench import Wire

PENDING, ENABLE, CONTEXT, STRIDE = 0x1000, 0x2000, 0x200000, 0x1000
CLAIM = 4


def plic(contexts: int = 2) -> tuple[list[Wire], Plic]:
    wires = [Wire() for _ in range(contexts)]
    return wires, Plic(96, wires)


def enable(device: Plic, source: int, context: int = 0, priority: int = 1) -> None:
    device.write(4 * source, 4, priority)
    at = ENABLE + 0x80 * context + 4 * (source // 32)
    device.write(at, 4, device.read(at, 4) | 1 << source % 32)


def test_a_source_reaches_only_contexts_that_enable_it() -> None:
    wires, device = plic()
    enable(device, 10, context=1)
    device.line(10)(True)  # noqa: FBT003
    assert [wire.level for wire in wires] == [False, True]
    assert device.read(PENDING, 4) == 1 << 10


def test_claim_takes_the_highest_priority_and_of_equals_the_lowest_number() -> None:
    _, device = plic()
    for source, priority in ((3, 1), (40, 5), (7, 5)):
        enable(device, source, priority=priority)
        device.line(source)(True)  # noqa: FBT003
    assert [device.read(CONTEXT + CLAIM, 4) for _ in range(4)] == [7, 40, 3, 0]


def test_a_level_that_stays_is_pending_again_after_completion() -> None:
    wires, device = plic()
    enable(device, 10)
    line = device.line(10)
    line(True)  # noqa: FBT003
    assert device.read(CONTEXT + CLAIM, 4) == 10
    assert not wires[0].level
    line(True)  # noqa: FBT003 - again while in service: nothing
    assert not wires[0].level
    device.write(CONTEXT + CLAIM, 4, 10)
    assert wires[0].level
    device.read(CONTEXT + CLAIM, 4)
    line(False)  # noqa: FBT003
    device.write(CONTEXT + CLAIM, 4, 10)
    assert not wires[0].level


def test_threshold_and_priority_zero_hide_sources() -> None:
    wires, device = plic()
    enable(device, 5, priority=2)
    device.line(5)(True)  # noqa: FBT003
    device.write(CONTEXT, 4, 2)
    assert not wires[0].level
    device.write(CONTEXT, 4, 1)
    assert wires[0].level
    device.write(4 * 5, 4, 0)
    assert not wires[0].level
    assert device.read(CONTEXT + CLAIM, 4) == 0


def test_two_contexts_cannot_claim_the_same_interrupt() -> None:
    wires, device = plic()
    for context in (0, 1):
        enable(device, 33, context)
    device.line(33)(True)  # noqa: FBT003
    assert device.read(CONTEXT + STRIDE + CLAIM, 4) == 33
    assert device.read(CONTEXT + CLAIM, 4) == 0
    assert not wires[0].level


def test_source_zero_and_registers_beyond_the_end_do_nothing() -> None:
    wires, device = plic()
    device.write(0, 4, 7)
    device.write(ENABLE, 4, 1)
    device.write(CONTEXT + 9 * STRIDE, 4, 1)
    device.write(4 * 500, 4, 1)
    assert (device.read(0, 4), device.read(ENABLE, 4), device.read(4 * 500, 4)) == (0, 0, 0)
    assert device.read(CONTEXT + 9 * STRIDE + CLAIM, 4) == 0
    assert not any(wire.history and wire.history[-1] for wire in wires)
