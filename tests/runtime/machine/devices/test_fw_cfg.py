from kinst.runtime.machine.devices.fw_cfg import FirmwareConfiguration, configuration


def item(device: FirmwareConfiguration, number: int, size: int, width: int = 1) -> bytes:
    """An item's first bytes, read as drivers do."""
    device.write(8, 2, number << 8 & 0xFF00 | number >> 8)  # the selector is big-endian
    return b"".join(device.read(0, width).to_bytes(width, "little") for _ in range(size // width))


def test_it_is_there_and_has_no_kernel() -> None:
    device = FirmwareConfiguration(configuration(cpus=3))
    assert item(device, 0x00, 4) == item(device, 0x00, 4, width=4) == b"QEMU"
    assert item(device, 0x01, 4) == bytes((1, 0, 0, 0))  # no DMA
    assert item(device, 0x05, 2) == bytes((3, 0))
    assert item(device, 0x08, 8) == bytes(8)  # the kernel's size


def test_its_files_are_smbios_tables() -> None:
    device = FirmwareConfiguration(configuration(cpus=1))
    count = int.from_bytes(item(device, 0x19, 4), "big")
    directory = item(device, 0x19, 4 + 64 * count)[4:]
    files = {}
    for at in range(0, len(directory), 64):
        size, number = int.from_bytes(directory[at : at + 4], "big"), int.from_bytes(directory[at + 4 : at + 6], "big")
        files[directory[at + 8 : at + 64].rstrip(b"\0").decode()] = item(device, number, size)
    anchor, tables = files["etc/smbios/smbios-anchor"], files["etc/smbios/smbios-tables"]
    assert anchor.startswith(b"_SM3_")
    assert len(anchor) == anchor[6] == 24
    assert sum(anchor) & 0xFF == 0
    assert int.from_bytes(anchor[12:16], "little") == len(tables)
    assert tables[0] == 127


def test_reading_past_the_end_gives_zeros() -> None:
    assert item(FirmwareConfiguration({0x20: b"ab"}), 0x20, 8, width=8) == b"ab" + bytes(6)
