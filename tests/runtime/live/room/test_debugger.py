"""QEMU's own stub: stops before instructions, the CPU's registers there, and on without us."""

import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kinst.runtime.live.qemu import Qemu
from kinst.runtime.live.room.debugger import Debugger
from kinst.runtime.machine.configuration import End
from kinst.runtime.readout.packets import StubError
from tests.runtime.live.qemus import needs

RAM = 0x8000_0000
# li t0, 5; li t1, 7; li t0, 9; lui t2, 0x100; lui t3, 5; addi t3, t3, 0x555; sw t3, 0(t2): power off
CODE = (0x0050_0293, 0x0070_0313, 0x0090_0293, 0x0010_03B7, 0x0000_5E37, 0x555E_0E13, 0x01C3_A023, 0x0000_006F)
T0, PC = 5, 32


@pytest.fixture
def qemu(tmp_path: Path) -> Iterator[Qemu]:
    needs("qemu-system-riscv64")
    image = tmp_path / "image.bin"
    image.write_bytes(struct.pack(f"<{len(CODE)}I", *CODE))
    words = ["qemu-system-riscv64", "-M", "virt", "-bios", str(image)]
    found = Qemu(words, None, wants_console=False, wants_stub=True)
    yield found
    found.close()


def wait(debugger: Debugger) -> None:
    end = time.monotonic() + 30
    while not debugger.has_stopped():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_it_stops_before_each_and_goes_on(qemu: Qemu) -> None:
    debugger = Debugger(qemu.stub)
    debugger.set_breakpoints([RAM + 4, RAM + 8, RAM + 12])
    assert not debugger.has_stopped()
    qemu.resume()
    found = []
    for last in (False, False, True):
        wait(debugger)
        at = debugger.register(PC)
        found.append((at - RAM, debugger.register(T0)))
        if not last:
            debugger.go_on(at)
    assert found == [(4, 5), (8, 5), (12, 9)]
    debugger.leave()
    end = time.monotonic() + 30
    while qemu.end() is None and time.monotonic() < end:
        time.sleep(0.001)
    assert qemu.end() is End.POWER_OFF


def test_breakpoints_may_be_others_while_it_is_stopped(qemu: Qemu) -> None:
    debugger = Debugger(qemu.stub)
    debugger.set_breakpoints([RAM + 4, RAM + 8, RAM + 12])
    qemu.resume()
    wait(debugger)
    debugger.set_breakpoints([RAM + 4, RAM + 12, RAM + 20])
    found = []
    for _ in range(2):
        debugger.go_on(debugger.register(PC))
        wait(debugger)
        found.append(debugger.register(PC) - RAM)
    assert found == [12, 20]


def test_registers_by_name_are_those_that_it_describes(qemu: Qemu) -> None:
    debugger = Debugger(qemu.stub)
    assert debugger.register(PC) == 0x1000  # where all begin
    assert debugger.named_register("misa") >> 62 == 2  # 64 bits
    with pytest.raises(StubError, match="has no register tcr_el1"):
        debugger.named_register("tcr_el1")


def test_what_it_does_not_do_is_said(qemu: Qemu) -> None:
    with pytest.raises(StubError, match="has no register 9999"):
        Debugger(qemu.stub).register(9999)


# csrr t0, mhartid; beqz t0, . (the first CPU, of another cluster, stays there); j .
CLUSTERS = (0xF140_22F3, 0x0002_8063, 0x0000_006F)


def test_a_stop_is_that_of_the_cpu_that_stopped_whatever_its_cluster() -> None:
    needs("qemu-system-riscv64")
    loaded = [f"loader,addr={RAM + 4 * at:#x},data={word:#x},data-len=4" for at, word in enumerate(CLUSTERS)]
    devices = [word for one in loaded for word in ("-device", one)]
    command = ["qemu-system-riscv64", "-M", "sifive_u", "-smp", "2", "-bios", "none", *devices]
    found = Qemu(command, None, wants_console=False, wants_stub=True)
    try:
        debugger = Debugger(found.stub)
        debugger.set_breakpoints([RAM + 8])
        found.resume()
        wait(debugger)
        assert (debugger.register(PC), debugger.register(T0)) == (RAM + 8, 1)
        debugger.leave()
        assert found.monitor.ask("query-status")["status"] == "running"
    finally:
        found.close()
