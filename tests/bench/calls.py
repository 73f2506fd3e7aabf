"""Calls of one function that each begin with the same state, beside plain Unicorn: its own loop, with nothing restored,
and with the CPU's state restored and the input written; and beside qemu-riscv64, if it is installed: a loop, and a fork
for each call, as AFL's fork server makes them.

    python -m tests.bench.calls [SNAPSHOT]

Prints microseconds of CPU a call, and the ratio to the plain loop. SNAPSHOT is one of the sample kernel for riscv64.
"""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from kinst.runtime.api import open_image
from kinst.runtime.fuzzing.mutating import Mutator
from kinst.runtime.fuzzing.target import Target, target_template
from kinst.runtime.tracing.given import Machine

_IMAGE = Path(__file__).parents[2] / "samples" / "kernel-riscv64.elf"
_CALLS = 2000
_INPUT = b"hello, world"


def measured(call: Callable[[], object]) -> float:
    """Microseconds of user CPU a call."""
    for _ in range(50):
        call()
    start = time.process_time()
    for _ in range(_CALLS):
        call()
    return (time.process_time() - start) / _CALLS * 1e6


def main(start: Path | None = None) -> None:
    """Measure, and print a row for each way."""
    with open_image(_IMAGE) as image:
        calls = image.sweep("hash_bytes", coverage="", machine=Machine(clock="icount", start=start)).calls
        target = Target(calls, target_template("hash_bytes(1, $data, $size)"), 1, 1_000_000)
        rows = plain(image.opened.image.symbols.address_of("hash_bytes") or 0)
        rows |= under_qemu()
        rows["kinst, a call"] = measured(lambda: calls.call(target.call_of(_INPUT)))
        rows["kinst-fuzz, with its coverage"] = measured(lambda: (target.run(_INPUT), target.edges.taken()))
        mutator = Mutator(Random(0), [], 64)
        rows["a mutation"] = measured(lambda: mutator.mutated(_INPUT, [_INPUT]))
    least = rows["Unicorn, nothing restored"]
    for name, spent in rows.items():
        print(f"{name:36} {spent:8.2f} us {spent / least:8.3f}")


def plain(address: int) -> dict[str, float]:
    """Unicorn's own Python binding: emu_start up to the return address."""
    import unicorn
    from unicorn import riscv_const as riscv

    engine = unicorn.Uc(unicorn.UC_ARCH_RISCV, unicorn.UC_MODE_RISCV64)
    code, data, stack, back = address & -0x1000, 0x1000_0000, 0x2000_0000, 0x3000_0000
    for at in (data, stack, back):
        engine.mem_map(at, 0x1000)
    engine.mem_map(code, 0x2000)
    with open_image(_IMAGE) as image:
        content = image.opened.image
        engine.mem_write(address, content.read(address, 256))
    engine.mem_write(data, _INPUT)
    fresh = engine.context_save()

    def run() -> None:
        engine.reg_write(riscv.UC_RISCV_REG_A0, 1)
        engine.reg_write(riscv.UC_RISCV_REG_A1, data)
        engine.reg_write(riscv.UC_RISCV_REG_A2, len(_INPUT))
        engine.reg_write(riscv.UC_RISCV_REG_SP, stack + 0x800)
        engine.reg_write(riscv.UC_RISCV_REG_RA, back)
        engine.emu_start(address, back)

    def restored() -> None:
        engine.context_restore(fresh)
        engine.mem_write(data, _INPUT)
        engine.mem_write(stack, bytes(0x1000))
        run()

    return {"Unicorn, nothing restored": measured(run), "Unicorn, state and input restored": measured(restored)}


def under_qemu() -> dict[str, float]:
    """The function's code in a static program, which QEMU runs in user mode; nothing where the tools are not there."""
    compiler, emulator = shutil.which("riscv64-linux-gnu-gcc"), shutil.which("qemu-riscv64")
    if compiler is None or emulator is None:
        return {}
    source = Path(__file__).with_name("calls_of_qemu.c")
    with open_image(_IMAGE) as image, TemporaryDirectory() as name:
        code, program = Path(name, "code"), Path(name, "program")
        content = image.opened.image
        row = content.symbols.rows_named("hash_bytes")
        code.write_bytes(content.read(int(content.symbols.address[row][0]), int(content.symbols.size[row][0])))
        given = (f'-DCODE="{code}"', f'-DINPUT="{_INPUT.decode()}"')
        subprocess.run([compiler, "-O2", "-static", *given, str(source), "-o", str(program)], check=True)

        def spent(*words: str) -> float:
            return float(subprocess.run([emulator, program, *words], check=True, capture_output=True).stdout)

        return {
            "QEMU's user mode, a loop": spent("100000"),
            "QEMU's user mode, a fork a call": spent(str(_CALLS), "fork"),
        }


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
