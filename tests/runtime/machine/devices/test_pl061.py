from kinst.runtime.machine.devices.arm.pl061 import DIR, IC, IE, IEV, IS, MIS, RIS, Pl061


def test_outputs_read_as_written_and_inputs_as_zero() -> None:
    gpio = Pl061(lambda _level: None)
    gpio.write(DIR, 4, 0x0F)
    gpio.write(0x3FC, 4, 0xFF)
    assert gpio.read(0x3FC, 4) == 0x0F
    gpio.write(0x3 << 2, 4, 0x01)  # pins 0 and 1 only
    assert (gpio.read(0x3FC, 4), gpio.read(0x9 << 2, 4)) == (0x0D, 0x09)


def test_a_low_level_interrupts_where_it_is_asked_for() -> None:
    levels: list[bool] = []
    gpio = Pl061(levels.append)
    gpio.write(IS, 4, 0x3)
    gpio.write(IEV, 4, 0x2)  # pin 1: high level, which never comes
    assert (gpio.read(RIS, 4), gpio.read(MIS, 4), levels[-1]) == (0x1, 0, False)
    gpio.write(IE, 4, 0x3)
    assert (gpio.read(MIS, 4), levels[-1]) == (0x1, True)
    gpio.write(IC, 4, 0xFF)  # a level stays
    assert levels[-1]
    gpio.write(IEV, 4, 0x3)
    assert not levels[-1]


def test_identification() -> None:
    gpio = Pl061(lambda _level: None)
    found = bytes(gpio.read(offset, 4) for offset in range(0xFE0, 0x1000, 4))
    assert found == bytes.fromhex("61100400 0df005b1")
