from kinst.runtime.machine.devices.arm.gicv2m import SETSPI, TYPER, Gicv2m


def test_a_message_is_an_edge_of_its_interrupt() -> None:
    seen: list[tuple[int, bool]] = []
    frame = Gicv2m(80, [lambda level, number=number: seen.append((number, level)) for number in range(64)])  # type: ignore[misc]
    assert frame.read(TYPER, 4) == 80 << 16 | 64
    for value in (79, 144, 83):
        frame.write(SETSPI, 4, value)
    assert seen == [(3, True), (3, False)]
