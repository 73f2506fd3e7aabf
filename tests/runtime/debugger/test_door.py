"""What a debugger can do by the protocol, on a sample kernel of each machine."""

import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kinst.runtime import End, Machine
from kinst.runtime.api import open_image as opened
from kinst.targets.errors import UsageError
from kinst.targets.image import open_image
from tests.commands.in_process import kinst_run
from tests.runtime.debugger.client import Client, debugged
from tests.runtime.debugger.samples import SAMPLES

machines = pytest.mark.parametrize("machine", SAMPLES)
_COUNT = ("--clock", "icount", "-n", "fbt::hash_bytes:entry { @ = count(); }")
_DONE = "kernel: all done"


def _address(machine: str, name: str) -> int:
    return open_image(SAMPLES[machine]).symbols.address_of(name) or 0


def _content(machine: str, address: int, size: int) -> bytes:
    image = open_image(SAMPLES[machine])
    return bytes(image.read(address, size))


def _run(machine: str, folder: Path, use: Callable[[Client], None], *words: str) -> str:
    done = debugged(SAMPLES[machine], folder, use, *(words or _COUNT))
    assert done.returncode == 0, done.stderr
    return done.stdout


def _breaks(client: Client, address: int) -> str:
    assert client.ask(f"Z0,{address:x},1") == "OK"
    reply = client.ask("vCont;c")
    assert client.ask(f"z0,{address:x},1") == "OK"
    return reply


def _number_of_pc(client: Client) -> int:
    text = client.packets.ask("qXfer:features:read:target.xml:0,4000")
    while text[0] == "m" or "</target>" not in text:
        text = text[1:] + client.packets.ask(f"qXfer:features:read:target.xml:{len(text) - 1:x},4000")[1:]
    found = re.search(r'<reg name="(?:pc|rip)"[^>]* regnum="(\d+)"', text)
    assert found
    return int(found[1])


@machines
def test_code_is_read_as_the_guests_own_and_probes_stay(machine: str, tmp_path: Path) -> None:
    at = _address(machine, "hash_bytes")
    own = _content(machine, at, 8)

    def use(client: Client) -> None:
        assert _breaks(client, at) == "T05swbreak:;thread:1;"
        assert bytes.fromhex(client.ask(f"m{at:x},8")) == own
        assert client.ask(f"M{at:x},8:{own.hex()}") == "OK"  # as gdb's `load` would
        assert client.ask(f"M{at:x},8:{bytes(byte ^ 0xFF for byte in own).hex()}").startswith("E.a probe is at")
        assert client.ask("D") == "OK"

    plain = kinst_run(SAMPLES[machine], *_COUNT)
    assert _run(machine, tmp_path, use) == plain.stdout


@machines
def test_a_watchpoint_stops_behind_the_store(machine: str, tmp_path: Path) -> None:
    variable = _address(machine, "soft_ticks")

    def use(client: Client) -> None:
        assert client.ask(f"Z2,{variable:x},4") == "OK"
        for count in (1, 2, 3):
            reply = client.ask("vCont;c")
            assert reply == f"T05watch:{variable:x};thread:1;"
            assert bytes.fromhex(client.ask(f"m{variable:x},4")) == count.to_bytes(4, "little")
        assert client.ask(f"z2,{variable:x},4") == "OK"
        assert client.ask(f"Z3,{variable:x},4") == "OK"
        assert client.ask("vCont;c") == f"T05rwatch:{variable:x};thread:1;"
        assert client.ask("D") == "OK"

    assert _DONE in _run(machine, tmp_path, use)


@machines
def test_a_store_in_a_probed_instruction_is_seen(machine: str, tmp_path: Path) -> None:
    """The displaced instruction is executed in a trampoline, or by Python."""
    variable = _address(machine, "soft_ticks")

    def use(client: Client) -> None:
        assert client.ask(f"Z2,{variable:x},4") == "OK"
        places = set()
        for count in (1, 2, 3):
            assert client.ask("vCont;c") == f"T05watch:{variable:x};thread:1;"
            assert int.from_bytes(bytes.fromhex(client.ask(f"m{variable:x},4")), "little") == count
            places.add(client.register(_number_of_pc(client)))
        assert len(places) == 1
        assert client.ask("D") == "OK"

    words = ("--clock", "icount", "-n", "kinst::callout_process: { @ = count(); }")
    assert _run(machine, tmp_path, use, *words) == kinst_run(SAMPLES[machine], *words).stdout


@machines
def test_breakpoint_of_a_clause_stops_in_its_function(machine: str, tmp_path: Path) -> None:
    start, size = _address(machine, "rpc_release"), 64

    def use(client: Client) -> None:
        number = _number_of_pc(client)
        for _ in range(3):
            assert client.ask("vCont;c") == "T05thread:1;"
            assert start < client.register(number) <= start + size
        assert client.ask("D") == "OK"

    program = "fbt::rpc_release:entry /n++ < 3/ { breakpoint(); } fbt::rpc_release:entry { @ = count(); }"
    done = debugged(SAMPLES[machine], tmp_path, use, "-w", "-n", program)
    assert done.returncode == 0
    assert done.stdout.count("breakpoint() by fbt:") + done.stderr.count("breakpoint() by fbt:") == 3
    assert _DONE in done.stdout


@machines
def test_kill_ends_the_run_and_prints_what_was_collected(machine: str, tmp_path: Path) -> None:
    at = _address(machine, "hash_bytes")

    def use(client: Client) -> None:
        _breaks(client, at)
        client.packets.send_last("k")

    said = _run(machine, tmp_path, use, "-n", "fbt::kmalloc:entry { @ = count(); } END { printa(@); trace(7); }")
    assert _DONE not in said
    assert said.rstrip().endswith("7")


def test_the_guest_goes_on_without_a_debugger_that_vanishes(tmp_path: Path) -> None:
    at = _address("arm64", "hash_bytes")

    def use(client: Client) -> None:
        _breaks(client, at)  # and leave

    done = debugged(SAMPLES["arm64"], tmp_path, use, *_COUNT)
    assert _DONE in done.stdout
    assert "the debugger has closed the connection" in done.stderr


_SPIN = {"amd64": "eb fe", "arm64": "00 00 00 14", "riscv64": "6f 00 00 00"}  # a jump to itself
_AT = {"amd64": 0x10_0000, "arm64": 0x4008_0000, "riscv64": 0x8000_0000}


@machines
def test_an_interrupt_stops_a_guest_that_runs_for_ever(machine: str, tmp_path: Path) -> None:
    image = tmp_path / "spin.bin"
    image.write_bytes(bytes.fromhex(_SPIN[machine]))

    def use(client: Client) -> None:
        number = _number_of_pc(client)
        for _ in range(3):
            client.packets.send("vCont;c")
            assert client.interrupt().startswith("T02")
            assert client.register(number) == _AT[machine]
            assert client.ask("vCont;s:1;c") == "T05thread:1;"
            assert client.register(number) == _AT[machine]
        client.packets.send_last("k")

    done = debugged(image, tmp_path, use, "--raw", f"{machine}@{_AT[machine]:#x}")
    assert done.returncode == 0


@machines
def test_the_end_of_the_guest_is_told(machine: str, tmp_path: Path) -> None:
    def use(client: Client) -> None:
        assert client.ask("vCont;c") == "W00"

    assert _DONE in _run(machine, tmp_path, use)


@machines
def test_monitor(machine: str, tmp_path: Path) -> None:
    at = _address(machine, "hash_bytes")

    def use(client: Client) -> None:
        assert "continue-to PROBE" in client.monitor("help")
        assert "hash_bytes:entry" in client.monitor("probes")
        assert "CPU 1: " in client.monitor("info")
        assert "no command 'prob'; nearest probes" in client.monitor("prob")
        assert "no site of this run" in client.monitor("continue-to fbt::kfree:entry")
        assert "the guest stops at" in client.monitor("continue-to fbt::hash_bytes:entry")
        assert re.fullmatch("T05thread:[12];", client.ask("vCont;c"))
        assert at <= client.register(_number_of_pc(client)) <= at + 8
        assert client.ask("vCont;c") == "W00"

    _run(machine, tmp_path, use, "--cpus", "2", *_COUNT)


@pytest.mark.turns
@machines
def test_the_door_from_python(machine: str, tmp_path: Path) -> None:
    path, counts = tmp_path / "door", list[str]()

    def talk() -> None:
        client = Client(path)
        _breaks(client, _address(machine, "rpc_release"))
        counts.append(client.ask("qC"))
        assert client.ask("D") == "OK"
        client.close()

    thread = threading.Thread(target=talk, daemon=True)
    with opened(SAMPLES[machine]) as image:
        for gdb, call, why in (("door", None, "is no .HOST:.PORT"), (1, "fibonacci(1)", "and not for calls")):
            with pytest.raises(UsageError, match=why):
                image.trace(machine=Machine(gdb=gdb), call=call)
        with image.trace(_COUNT[3], machine=Machine(clock="icount", gdb=f"unix:{path}")) as trace:
            thread.start()
            assert trace.run(wall_seconds=60) is End.POWER_OFF
            assert trace.aggregation()
    thread.join(60)
    assert counts == ["QC1"]
    assert not path.exists()


@machines
def test_memory_by_physical_addresses(machine: str, tmp_path: Path) -> None:
    at = _address(machine, "hash_bytes")

    def use(client: Client) -> None:
        _breaks(client, at)
        virtual = client.ask(f"m{at + 16:x},20")
        assert client.ask("Qqemu.PhyMemMode:1") == "OK"
        assert client.ask("qqemu.PhyMemMode") == "1"
        physical = at & 0x7FFF_FFFF if machine == "amd64" else at
        assert client.ask(f"m{physical + 16:x},20") == virtual
        assert client.ask("mffffffffffffff00,8") == "E01"
        assert client.ask("Qqemu.PhyMemMode:0") == "OK"
        assert client.ask("D") == "OK"

    _run(machine, tmp_path, use)


@machines
def test_registers_that_are_written(machine: str, tmp_path: Path) -> None:
    """A function is called as gdb's `call` does it: it returns to an address with a breakpoint."""
    at, back = _address(machine, "hash_bytes"), _address(machine, "rpc_release")

    def use(client: Client) -> None:
        _breaks(client, at)
        before = client.ask("g")
        changed = bytearray(bytes.fromhex(before))
        changed[8] ^= 0xFF
        assert client.ask(f"G{changed.hex()}") == "OK"
        assert client.ask("g") == changed.hex()
        assert client.ask(f"G{before}") == "OK"
        number = _number_of_pc(client)
        pc = client.register(number)
        assert client.ask(f"P{number:x}={back.to_bytes(8, 'little').hex()}") == "OK"
        assert client.register(number) == back
        assert client.ask(f"P{number:x}={pc.to_bytes(8, 'little').hex()}") == "OK"
        assert client.ask("pfff") == "E01"
        assert client.ask("D") == "OK"

    plain = kinst_run(SAMPLES[machine], *_COUNT)
    assert _run(machine, tmp_path, use) == plain.stdout


def test_a_second_debugger_finds_the_guest(tmp_path: Path) -> None:
    at = _address("riscv64", "hash_bytes")

    def use(client: Client) -> None:
        assert client.ask("D") == "OK"
        again = Client(tmp_path / "door")
        assert again.ask("?").startswith("T05")
        _breaks(again, at)
        assert again.ask("D") == "OK"
        again.close()

    assert _DONE in _run("riscv64", tmp_path, use)
