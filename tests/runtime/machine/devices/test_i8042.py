"""The keyboard controller and the ports that end a run."""

from kinst.runtime.machine.devices.pc.i8042 import I8042
from kinst.runtime.machine.devices.pc.port_io import AcpiPowerControl, DebugExit, PostCode, ResetControl
from tests.runtime.machine.devices.bench import Wire


def keyboard() -> tuple[I8042, Wire, list[str]]:
    wire, resets = Wire(), list[str]()
    return I8042(wire, Wire(), lambda: resets.append("reset")), wire, resets


def answers(controller: I8042) -> list[int]:
    found = []
    while controller.command.read(0, 1) & 1:
        found.append(controller.data.read(0, 1))
    return found


def test_self_tests_and_command_byte() -> None:
    controller, _, resets = keyboard()
    for command, expected in ((0xAA, 0x55), (0xAB, 0x00), (0x20, 0x61)):
        controller.command.write(0, 1, command)
        assert answers(controller) == [expected]
    controller.command.write(0, 1, 0x60)
    controller.data.write(0, 1, 0x44)
    controller.command.write(0, 1, 0x20)
    assert answers(controller) == [0x44]
    assert not resets


def test_keyboard_answers_and_interrupts() -> None:
    controller, wire, _ = keyboard()
    controller.data.write(0, 1, 0xFF)
    assert wire.level
    assert answers(controller) == [0xFA, 0xAA]
    assert not wire.level
    controller.data.write(0, 1, 0xED)
    controller.data.write(0, 1, 0x02)  # its argument, not a command
    assert answers(controller) == [0xFA, 0xFA]
    controller.data.write(0, 1, 0xF2)
    assert answers(controller) == [0xFA, 0xAB, 0x41]
    controller.command.write(0, 1, 0x60)
    controller.data.write(0, 1, 0x01)  # no translation
    controller.data.write(0, 1, 0xF2)
    assert answers(controller) == [0xFA, 0xAB, 0x83]


def test_every_byte_is_an_edge() -> None:
    """The PIC looks for edges: a handler that reads one byte must be called for the next."""
    controller, wire, _ = keyboard()
    controller.data.write(0, 1, 0xF2)
    assert len(answers(controller)) == wire.rises == 3


def test_mouse() -> None:
    keys, mouse = Wire(), Wire()
    controller = I8042(keys, mouse, lambda: None)
    for switch, command_byte in ((0xA8, 0x41), (0xA7, 0x61)):
        controller.command.write(0, 1, switch)
        controller.command.write(0, 1, 0x20)
        assert answers(controller) == [command_byte]
    controller.command.write(0, 1, 0x60)
    controller.data.write(0, 1, 0x47)
    for command, argument, expected in ((0xD3, 0x5A, [0x5A]), (0xD4, 0xFF, [0xFA, 0xAA, 0x00])):
        controller.command.write(0, 1, command)
        controller.data.write(0, 1, argument)
        assert (keys.level, mouse.level) == (False, True)
        assert controller.command.read(0, 1) & 0x21 == 0x21
        assert answers(controller) == expected
        assert not mouse.level


def test_reset_lines() -> None:
    controller, _, resets = keyboard()
    controller.command.write(0, 1, 0xFE)
    assert resets == ["reset"]
    controller.command.write(0, 1, 0xD1)
    controller.data.write(0, 1, 0xDF)
    assert resets == ["reset"]
    controller.command.write(0, 1, 0xD1)
    controller.data.write(0, 1, 0xDE)
    assert resets == ["reset", "reset"]


def test_ports_that_end_the_run() -> None:
    codes: list[int] = []
    DebugExit(codes.append).write(0, 1, 7)
    acpi = AcpiPowerControl(codes.append)
    acpi.write(0, 2, 0x0001)
    acpi.write(0, 2, 0x2000)
    reset = ResetControl(codes.append)
    reset.write(0, 1, 2)
    reset.write(0, 1, 6)
    assert codes == [7, 0, 0]
    assert reset.read(0, 1) == 2
    post = PostCode()
    post.write(0, 1, 0x155)
    assert post.read(0, 1) == 0x55
