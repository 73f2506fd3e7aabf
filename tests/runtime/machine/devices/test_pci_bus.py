"""A PCI bus as a kernel finds it: configuration ports, base addresses, capabilities and interrupts."""

from dataclasses import dataclass, field
from typing import Final

from kinst.runtime.machine.bus import PortBus
from kinst.runtime.machine.devices.pc.pci_bus import ConfigurationAddress, ConfigurationData, HostBridge, PciMemory
from kinst.runtime.machine.devices.pc.port_io import ResetControl
from kinst.runtime.machine.devices.virtio.entropy import VirtioEntropy
from kinst.runtime.machine.devices.virtio.pci import SIZE
from tests.runtime.machine.devices.virtio_driver import DATA, Driver

ADDRESS, DATA_PORT, RESET_PORT = 0xCF8, 0xCFC, 0xCF9
WINDOW: Final = 0xFEB0_0000
COMMAND, BASE, INTERRUPT = 0x04, 0x10, 0x3C


@dataclass
class Pc:
    """Ports and memory of a PC with one device on its PCI bus, which `driver` uses."""

    driver: Driver = field(default_factory=lambda: Driver(VirtioEntropy(1), is_pci=True))
    ports: PortBus = field(default_factory=PortBus)
    ends: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        assert self.driver.function is not None
        functions = (HostBridge(), self.driver.function)
        address = ConfigurationAddress()
        self.ports.attach(ResetControl(self.ends.append), RESET_PORT)
        self.ports.attach_whole(address, ADDRESS)
        self.ports.attach(ConfigurationData(address, functions), DATA_PORT)
        self.memory = PciMemory(WINDOW, 0x10_0000, functions)

    def select(self, device: int, register: int, function: int = 0, bus: int = 0) -> None:
        self.ports.write(ADDRESS, 4, 1 << 31 | bus << 16 | device << 11 | function << 8 | register)

    def read(self, register: int, size: int = 4, device: int = 1) -> int:
        self.select(device, register & ~3)
        return self.ports.read(DATA_PORT + (register & 3), size)

    def write(self, register: int, value: int, size: int = 4) -> None:
        self.select(1, register & ~3)
        self.ports.write(DATA_PORT + (register & 3), size, value)


def test_a_kernel_finds_the_bridge_and_what_is_behind_it() -> None:
    pc = Pc()
    assert (pc.read(0, device=0), pc.read(0x0A, 2, device=0)) == (0x0008_1B36, 0x0600)
    assert (pc.read(0), pc.read(0x08, 1), pc.read(0x0A, 2), pc.read(0x0E, 1)) == (0x1044_1AF4, 1, 0x00FF, 0)
    assert pc.read(0, device=2) == 0xFFFF_FFFF
    pc.select(1, 0, function=1)
    assert pc.ports.read(DATA_PORT, 4) == 0xFFFF_FFFF
    pc.select(1, 0, bus=1)
    assert pc.ports.read(DATA_PORT, 2) == 0xFFFF
    pc.ports.write(ADDRESS, 4, 1 << 11)  # not enabled
    assert pc.ports.read(DATA_PORT, 4) == 0xFFFF_FFFF


def test_the_address_is_one_word_and_a_byte_in_it_is_the_reset_port() -> None:
    """Linux writes a byte to 0xcfb and looks whether the address is still what it was."""
    pc = Pc()
    pc.ports.write(ADDRESS, 4, 0x8000_0400)  # bit 2 of the byte at 0xcf9
    pc.ports.write(ADDRESS + 3, 1, 1)
    assert (pc.ports.read(ADDRESS, 4), pc.ends) == (0x8000_0400, [])
    pc.ports.write(RESET_PORT, 1, 4)
    assert len(pc.ends) == 1


def test_a_base_address_tells_its_size_and_can_be_changed() -> None:
    pc = Pc()
    assert pc.read(BASE) == WINDOW
    pc.write(BASE, 0xFFFF_FFFF)
    assert pc.read(BASE) == -SIZE & 0xFFFF_FFFF
    pc.write(BASE, WINDOW + 0x8_0000)
    pc.memory.write(0x8_0014, 1, 1)
    assert (pc.memory.read(0x8_0014, 1), pc.memory.read(0x14, 1)) == (1, 0xFF)
    pc.write(COMMAND, 0, 2)  # no memory
    assert pc.memory.read(0x8_0014, 1) == 0xFF
    pc.write(0, 0x1234)
    assert pc.read(0) == 0x1044_1AF4


def test_capabilities_lead_to_the_four_parts_of_the_memory() -> None:
    pc, parts = Pc(), {}
    at = pc.read(0x34, 1)
    while at:
        vendor, following, length, part = pc.read(at).to_bytes(4, "little")
        assert (vendor, length, pc.read(at + 4, 1)) == (0x09, 20, 0)
        parts[part] = range(pc.read(at + 8), pc.read(at + 8) + pc.read(at + 12))
        at = following
    assert sorted(parts) == [1, 2, 3, 4]
    assert sorted(place.start for place in parts.values()) == [0, 0x1000, 0x2000, 0x3000]
    assert all(place.stop <= SIZE for place in parts.values())


def test_an_interrupt_shows_in_the_status_and_can_be_turned_off() -> None:
    pc = Pc()
    assert (pc.read(INTERRUPT, 1), pc.read(INTERRUPT + 1, 1)) == (11, 1)
    pc.driver.start()
    pc.driver.chain([(DATA, 4, True)])
    pc.driver.offer(0)
    pc.driver.bench.wait()
    assert (pc.read(COMMAND + 2, 2) & 8, pc.driver.bench.line.level) == (8, True)
    pc.write(COMMAND, 0x0406, 2)
    assert not pc.driver.bench.line.level
    pc.write(COMMAND, 0x0006, 2)
    assert pc.driver.bench.line.level
    assert pc.driver.read("interrupts") == 1
    assert (pc.read(COMMAND + 2, 2) & 8, pc.driver.bench.line.level) == (0, False)
