"""What a probe of a device's register costs at its accesses and at those of another register, and one of exceptions,
beside Qiling's `hook_mem_read` and `hook_intr` of the same. Enabled or not: one that is not must cost nothing.

The least of a few runs is printed: that is what can be told apart on a noisy machine."""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from qiling import Qiling
from qiling.const import QL_ARCH, QL_OS, QL_VERBOSE

from kinst.rewriter.assemble import assemble
from kinst.runtime.machine.boards.registry import board_of
from kinst.runtime.machine.configuration import Configuration, End
from kinst.runtime.machine.loading.loader import load_image
from kinst.runtime.machine.system import System
from kinst.runtime.providers.mmio import MmioProvider
from kinst.runtime.providers.provider import Providers
from kinst.runtime.providers.trap import TrapProvider
from kinst.runtime.tracing.host.machine_host import MachineHost
from kinst.targets.arch.arm64 import ARM64
from kinst.targets.c_types import NoImageTypes
from kinst.targets.image import open_to_run
from kinst.targets.machines.registry import default_machine, machine_facts
from kinst.targets.probe import parse_probe_name
from tests.writers.elf import EM_AARCH64, Part, elf64

REPEATS: Final = 7
TEXT, VECTORS, UART = 0x4020_0000, 0x4021_0000, 0x0900_0000
FLAGS, CONTROL = 0x18, 0x30  # registers of the UART
OFF: Final = 0x8400_0008  # PSCI: SYSTEM_OFF
IDLE: Final = 0x90  # what the flags read


@dataclass(frozen=True, slots=True)
class Loop:
    """What a guest does over and over, how often, the probe, and Qiling's hook."""

    body: str
    times: int
    probe: str
    hook: str


LOOPS: Final = {
    "a register": Loop(f"ldr w1, [x2, #{FLAGS}]", 20_000, "mmio:console:UARTFR:read", "hook_mem_read"),
    "another": Loop(f"ldr w1, [x2, #{CONTROL}]", 20_000, "mmio:console:UARTFR:read", "hook_mem_read"),
    "svc": Loop("svc #0", 5_000, "trap:exception:svc:entry", "hook_intr"),
}
Run = Callable[[], float]  # seconds of CPU of one


def _number(register: str, value: int) -> str:
    """Without a pool behind the code, where Qiling would run into it."""
    return f"movz {register}, #{value & 0xFFFF}; movk {register}, #{value >> 16}, lsl #16"


def _code(loop: Loop, *, is_booted: bool) -> bytes:
    start = f"{_number('x0', VECTORS)}; msr vbar_el1, x0; isb; " if is_booted else ""
    end = f"{_number('x0', OFF)}; hvc #0; " if is_booted else ""
    text = f"{_number('x2', UART)}; {_number('x3', loop.times)}; again: {loop.body}; subs x3, x3, #1; b.ne again"
    return assemble(ARM64, f"{start}{text}; {end}nop", TEXT)


def _ours(loop: Loop, folder: Path, way: str) -> Run:
    """A guest that is booted, since a called function has no devices. `way`: plain, unused or used."""
    path, vectors = (
        folder / "loop.elf",
        b"".join(assemble(ARM64, "eret", VECTORS).ljust(0x80, b"\0") for _ in range(16)),
    )
    parts = [Part(".text", TEXT, _code(loop, is_booted=True), 5), Part(".vectors", VECTORS, vectors, 5)]
    path.write_bytes(elf64(EM_AARCH64, TEXT, parts))
    image, facts = open_to_run(path), machine_facts(default_machine(ARM64.name))

    def run() -> float:
        system, fired = System(facts, board_of(facts.name), Configuration()), [0]
        loaded = load_image(image, facts, system.memory)
        if way != "plain":
            host = MachineHost(system, loaded, NoImageTypes())
            providers = Providers([MmioProvider(host), TrapProvider(host)])
            if way == "used":

                def count(_firing: object) -> None:
                    fired[0] += 1

                providers.enable(parse_probe_name(loop.probe, providers=("mmio", "trap")), count)
        system.board.start(loaded)
        start = time.process_time()
        assert system.run() is End.POWER_OFF
        spent = time.process_time() - start
        assert fired[0] == (loop.times if way == "used" and loop is not LOOPS["another"] else 0), fired
        return spent

    return run


def _qiling(loop: Loop, *, is_hooked: bool) -> Run:
    """The same code without vectors; the register is one that the user's function answers, as Qiling has it."""
    code, fired = _code(loop, is_booted=False), [0]
    profile = {"CODE": {"ram_size": "0x100000", "entry_point": str(TEXT), "heap_size": "0x1000",
                        "load_address": str(TEXT)}}  # fmt: skip
    ql = Qiling(code=code, archtype=QL_ARCH.ARM64, ostype=QL_OS.BLOB, profile=profile, verbose=QL_VERBOSE.OFF)

    def count(*_arguments: object) -> None:
        fired[0] += 1

    if loop.hook == "hook_intr":
        ql.hook_intr(count)
    else:
        ql.mem.map_mmio(UART, 0x1000, lambda _ql, _offset, _size: IDLE, lambda _ql, _offset, _size, _value: None)
        if is_hooked:
            ql.hook_mem_read(count, begin=UART + FLAGS, end=UART + FLAGS + 3)

    def run() -> float:
        fired[0] = 0
        start = time.process_time()
        ql.emu_start(TEXT, TEXT + len(code) - 4)
        spent = time.process_time() - start
        assert fired[0] == (loop.times if is_hooked and loop is not LOOPS["another"] else 0), fired
        return spent

    return run


def _ways(loop: Loop, folder: Path) -> dict[str, Run]:
    ways = {way: _ours(loop, folder, way) for way in ("plain", "unused", "used")}
    if loop.hook == "hook_mem_read":  # without a hook, Qiling ends at an exception
        ways["Qiling plain"] = _qiling(loop, is_hooked=False)
    return ways | {loop.hook: _qiling(loop, is_hooked=True)}


def main() -> None:
    """Print a row for each loop."""
    print("\nns of CPU an access or exception (arm64): plain, with a probe that is not enabled, with one that counts,")
    print("and in Qiling (whose devices are functions of its user) plain, and with a hook that counts")
    with tempfile.TemporaryDirectory() as folder:
        for name, loop in LOOPS.items():
            runs = _ways(loop, Path(folder))
            times: dict[str, list[float]] = {way: [] for way in runs}
            for repeat in range(REPEATS + 1):
                for way, run in runs.items():
                    spent = run()
                    if repeat:
                        times[way].append(spent / loop.times * 1e9)
            cost = "  ".join(f"{way} {min(spent):9,.0f}" for way, spent in times.items())
            print(f"{name:>10}  {cost}", flush=True)
