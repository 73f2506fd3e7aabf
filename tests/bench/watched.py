"""What a probe of memory costs at its variable and everywhere else, beside Qiling's `hook_mem_write` of the same."""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from qiling import Qiling
from qiling.const import QL_ARCH, QL_OS, QL_VERBOSE

from kinst.rewriter.assemble import assemble
from kinst.runtime.machine.boards.registry import board_of
from kinst.runtime.machine.calling.function_call import FunctionCall, set_c_registers
from kinst.runtime.machine.calling.loading import load_for_call
from kinst.runtime.machine.calling.template import parse_call
from kinst.runtime.machine.configuration import Configuration
from kinst.runtime.machine.hooks import MachineHooks
from kinst.runtime.machine.system import System
from kinst.runtime.providers.mem import MemProvider
from kinst.runtime.providers.provider import Providers
from kinst.runtime.tracing.host.machine_host import MachineHost
from kinst.targets.arch.amd64 import AMD64
from kinst.targets.c_types import NoImageTypes
from kinst.targets.image import open_to_run
from kinst.targets.machines.registry import default_machine, machine_facts
from kinst.targets.probe import parse_probe_name
from tests.writers.elf import EM_X86_64, Part, Symbol, elf64

REPEATS = 5
STORES = {"its own": 20_000, "others": 2_000_000}
TEXT, DATA, PAGE = 0x100_0000, 0x101_0000, 0x1000
PLACES = {"its own": DATA, "others": DATA + PAGE}
Run = Callable[[], None]


def _code(place: str) -> bytes:
    """Stores in a loop to the variable, or to another page."""
    text = f"mov ecx, {STORES[place]}; mov eax, {PLACES[place]:#x}; again: mov [rax], rcx; dec ecx; jnz again; ret"
    return assemble(AMD64, text, TEXT, is_plain=True)


def _ours(place: str, folder: Path, *, is_probed: bool) -> Run:
    code, path = _code(place), folder / "stores.elf"
    parts = [Part(".text", TEXT, code, 5), Part(".data", DATA, bytes(2 * PAGE), 6)]
    path.write_bytes(elf64(EM_X86_64, TEXT, parts, [Symbol("f", TEXT, len(code))]))
    facts, image = machine_facts(default_machine(AMD64.name)), open_to_run(path)
    system = System(facts, board_of(facts.name), Configuration())
    loaded, sums = load_for_call(image, system), [0]
    if is_probed:
        providers = Providers([MemProvider(MachineHost(system, loaded, NoImageTypes()))])
        name = parse_probe_name(f"mem::{DATA:#x}+8:write", providers=("mem",))

        def add(firing: object) -> None:
            sums[0] += firing.argument(1)  # type: ignore[attr-defined]

        providers.enable(name, add)

    def run() -> None:
        set_c_registers(system, loaded)
        call = FunctionCall(system, parse_call("f()"), TEXT)
        system.run(hooks=MachineHooks(event=call.handle))

    return run


def _qiling(place: str, *, is_hooked: bool) -> Run:
    code, sums = _code(place), [0]
    profile = {"CODE": {"ram_size": "0x100000", "entry_point": str(TEXT), "heap_size": "0x1000",
                        "load_address": str(TEXT)}}  # fmt: skip
    ql = Qiling(code=code, archtype=QL_ARCH.X8664, ostype=QL_OS.BLOB, profile=profile, verbose=QL_VERBOSE.OFF)
    if is_hooked:

        def add(_ql: object, _access: int, _address: int, _size: int, value: int) -> None:
            sums[0] += value

        ql.hook_mem_write(add, begin=DATA, end=DATA + 7)
    end = TEXT + len(code) - 1
    return lambda: ql.emu_start(TEXT, end)


def main() -> None:
    """Print a row for each place."""
    print("\nns of CPU a store (amd64): plain, with mem::VARIABLE:write that adds up, with ql.hook_mem_write that does")
    with tempfile.TemporaryDirectory() as folder:
        for place, stores in STORES.items():
            runs = {
                "plain": _ours(place, Path(folder), is_probed=False),
                "mem": _ours(place, Path(folder), is_probed=True),
                "Qiling plain": _qiling(place, is_hooked=False),
                "hook_mem_write": _qiling(place, is_hooked=True),
            }
            times: dict[str, list[float]] = {name: [] for name in runs}
            for repeat in range(REPEATS + 1):
                for name, run in runs.items():
                    start = time.process_time()
                    run()
                    if repeat:
                        times[name].append((time.process_time() - start) / stores * 1e9)
            cost = "  ".join(f"{name} {statistics.median(spent):8,.1f}" for name, spent in times.items())
            print(f"{place:>8}  {cost}")
