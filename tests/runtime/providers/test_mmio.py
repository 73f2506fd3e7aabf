"""mmio: which probes there are, and that one fires for each access, at its instruction."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.runtime.cli import run
from kinst.runtime.machine.bus import Bus
from kinst.runtime.machine.watching.accesses import AccessWatcher, DeviceAccess
from kinst.runtime.paging.walker import Access
from kinst.runtime.providers.mmio import DeviceMap, MmioProvider, parsed_range
from kinst.runtime.providers.provider import Providers
from kinst.runtime.trap.trap import Firing
from kinst.targets.machines.machine import DeviceFacts, Space
from kinst.targets.machines.registry import machine_facts
from kinst.targets.probe import parse_probe_name
from tests.runtime.machine.riscv_words import A0, NOP, T1, load, store
from tests.runtime.providers.hosts import Clock
from tests.runtime.providers.traced import sample
from tests.runtime.tracing.test_stuck_watch import NOBODYS, UART, firmware

DATA = {"arm64": "UARTDR", "riscv64": "RBR_THR", "amd64": "RBR_THR"}
PC = 0x1000  # of the clock's CPU
CODE = 0x8000_0000 + 4 * 9  # behind what `firmware` begins with: the handler's address, mtvec, the stack


def output_of(image: Path, program: str, *options: str) -> list[str]:
    words = ["-q", "--clock", "icount", "-n", program, *options, str(image)]
    result = CliRunner().invoke(run, words, prog_name="kinst-run")
    assert result.exit_code == 0, f"{result.stderr}\n{result.exception!r}"
    return result.stdout.split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0x1000", range(0x1000, 0x1001)),
        ("0x1000-0x10ff", range(0x1000, 0x1100)),
        ("0x1000-4351", range(0x1000, 0x1100)),
        ("0x1000+0x10", range(0x1000, 0x1010)),
        ("0x1000+16", range(0x1000, 0x1010)),
        ("0xffffffffffffffff", range((1 << 64) - 1, 1 << 64)),
        ("0x1000-0xfff", None),
        ("0x1000+0", None),
        ("0x10000000000000000", None),
        ("4096", None),
        ("console", None),
        ("0x1000-", None),
        ("0x1000+٣", None),
    ],
)
def test_ranges(text: str, expected: range | None) -> None:
    assert parsed_range(text) == expected


@pytest.mark.parametrize(
    ("machine", "space", "address", "expected"),
    [
        ("virt-arm64", Space.MEMORY, 0x0900_0000, ("console", "UARTDR", 0)),
        ("virt-arm64", Space.MEMORY, 0x0900_0030, ("console", "UARTCR", 0x30)),
        ("virt-arm64", Space.MEMORY, 0x0900_0050, ("console", "other", 0x50)),
        ("virt-arm64", Space.MEMORY, 0x0800_0104, ("gic", "GICD_ISENABLER", 0x104)),
        ("virt-arm64", Space.MEMORY, 0x0801_000C, ("gic-cpu", "GICC_IAR", 0xC)),
        ("virt-arm64", Space.MEMORY, 0x0A00_0270, ("virtio", "Status", 0x270)),
        ("virt-riscv64", Space.MEMORY, 0x0C20_1004, ("plic", "claim_complete", 0x20_1004)),
        ("virt-riscv64", Space.MEMORY, 0x0200_BFFC, ("clint", "mtime", 0xBFFC)),
        ("pc-amd64", Space.PORTS, 0x3FD, ("console", "LSR", 5)),
        ("pc-amd64", Space.MEMORY, 0x3FD, ("other", "other", 0)),
        ("pc-amd64", Space.MEMORY, 0xFEE0_00B0, ("lapic", "EOI", 0xB0)),
    ],
)
def test_what_is_at_an_address(machine: str, space: Space, address: int, expected: tuple[str, str, int]) -> None:
    found = DeviceMap(machine_facts(machine).devices).of(DeviceAccess(Access.READ, space, address, 4, 0, True))  # noqa: FBT003
    assert found == expected


class Host:
    """A machine whose accesses the test makes."""

    def __init__(self) -> None:
        self.devices: Mapping[str, DeviceFacts] = machine_facts("virt-arm64").devices
        self.watcher: AccessWatcher | None = None

    def watch(self, watcher: AccessWatcher) -> None:
        self.watcher = watcher

    def unwatch(self, watcher: AccessWatcher) -> None:
        assert watcher == self.watcher
        self.watcher = None

    def accessing(self, _access: DeviceAccess) -> Firing:
        return Clock().firing(0, 0)

    def access(self, access: Access, address: int, *, size: int = 4, is_answered: bool = True) -> None:
        if self.watcher is not None:
            self.watcher(DeviceAccess(access, Space.MEMORY, address, size, 0x5A, is_answered))


def names(providers: Providers, pattern: str) -> list[str]:
    found = providers.match(parse_probe_name(pattern, providers=("mmio",))).tolist()
    return [str(providers.probe(number)) for number in found]


def test_a_device_is_named_in_either_field() -> None:
    providers = Providers([MmioProvider(Host())])
    assert names(providers, "mmio::gic-v2m:write") == names(providers, "mmio:gic-v2m::write")
    assert names(providers, "mmio::gic-v2m:write")[0] == "mmio:gic-v2m:MSI_TYPER:write"
    assert names(providers, "mmio::UARTDR:") == ["mmio:console:UARTDR:read", "mmio:console:UARTDR:write"]
    assert names(providers, "mmio:rtc:console:") == []
    assert len(names(providers, "mmio::unmodelled:read")) == 1


def test_each_access_fires_once_and_after_disabling_nothing_is_watched() -> None:
    host = Host()
    providers, fired = Providers([MmioProvider(host)]), list[tuple[str, list[int]]]()
    assert host.watcher is None

    def note(firing: Firing) -> None:
        fired.append((str(providers.probe(firing.enabling.probe)), [firing.argument(index) for index in range(6)]))

    for pattern in ("mmio::0x9000000-0x90000ff:write", "mmio:::"):
        providers.enable(parse_probe_name(pattern, providers=("mmio",)), note)
    host.access(Access.WRITE, 0x0900_0000, size=1)
    host.access(Access.READ, 0x0900_0018)
    host.access(Access.READ, 0xDEAD_0000, is_answered=False)
    assert fired == [
        ("mmio:console:UARTDR:write", [0x0900_0000, 0x5A, 1, PC, 0, 0]),
        ("mmio::0x9000000-0x90000ff:write", [0x0900_0000, 0x5A, 1, PC, 0, 0]),
        ("mmio:console:UARTFR:read", [0x0900_0018, 0x5A, 4, PC, 0x18, 0]),
        ("mmio:unmodelled:other:read", [0xDEAD_0000, 0x5A, 4, PC, 0, 0]),
    ]
    providers.disable(providers.enabled)
    assert host.watcher is None


def test_a_bus_that_nobody_watches_has_its_own_methods() -> None:
    bus, seen = Bus(), list[tuple[Access, int, int, int, bool]]()
    bus.watch(lambda *access: seen.append(access))
    bus.write(0x10, 2, 0x1234)
    assert bus.read(0x10, 2) == 0xFFFF
    bus.watch(None)
    bus.write(0x10, 2, 0x5678)
    assert not {"read", "write"} & vars(bus).keys()
    assert seen == [(Access.WRITE, 0x10, 2, 0x1234, False), (Access.READ, 0x10, 2, 0xFFFF, False)]


@pytest.mark.parametrize("arch", DATA)
def test_each_byte_of_the_console_is_a_write(arch: str, tmp_path: Path) -> None:
    console = tmp_path / "console"
    program = (
        f'mmio:console:{DATA[arch]}:write /probefunc == "{DATA[arch]}"/ {{ @[func(arg3)] = count(); @n = count() }}'
    )
    initial = 0 if arch == "arm64" else 1  # the divisor has the same place
    *_, count = output_of(sample(arch), program, "--console", str(console))
    assert int(count) - initial == console.stat().st_size > 0


def test_the_place_is_that_of_the_instruction_in_its_block(tmp_path: Path) -> None:
    words = (*UART, NOP, store(T1, A0, 7, size=0), NOP, NOP, load(T1, A0, 5, size=0))
    for clock in ("icount", "host"):
        image = firmware(tmp_path, *words)
        program = 'mmio:::{ printf("%s %x %d ", probename, arg3, arg4) }'
        found = output_of(image, program, "--timeout", "20ms", "--clock", clock)
        first = CODE + 4 * (len(UART) + 1)
        assert found[:6] == ["write", f"{first:x}", "7", "read", f"{first + 12:x}", "5"]


def test_an_access_that_faults_since_nothing_is_there_is_one_too(tmp_path: Path) -> None:
    image = firmware(tmp_path, *UART, load(T1, A0, 5, size=0), *NOBODYS, load(T1, A0, 0xC, size=2))
    program = 'mmio:unmodelled::{ printf("%s %x %x", probename, arg0, arg3); exit(0) }'
    place = CODE + 4 * (len(UART) + 1 + len(NOBODYS))
    assert output_of(image, program, "--timeout", "20ms") == ["read", "d001200c", f"{place:x}"]


def test_there_is_no_machine_without_an_image() -> None:
    result = CliRunner().invoke(run, ["-n", "mmio:::read"], prog_name="kinst-run")
    assert result.exit_code == 1
    assert "provider mmio watches the machine of kinst-run" in result.stderr
