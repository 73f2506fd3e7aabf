"""Four CPUs that fill a small ring all the time: what is shown is never a mixture of two records, nor half of one."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.in_process import kinst_run
from tests.runtime.live.qemus import needs
from tests.samples.machines import MACHINES

# Each CPU calls f with a number of its own, which is also on the stack, at both ends of 2 KiB.
SOURCE = """
.globl _start
.type _start, @function
_start:
  csrr t0, mhartid
  la sp, stacks
  slli t1, t0, 12
  add sp, sp, t1
  li t1, 4096 - 2048
  add sp, sp, t1
  mv s1, t0
  li s0, CALLS
1:
  slli a0, s0, 3
  or a0, a0, s1
  sd a0, 0(sp)
  sd a0, 2040(sp)
  call f
  addi s0, s0, -1
  bnez s0, 1b
  la t2, ended
  li t1, 1
  amoadd.w zero, t1, (t2)
2:
  bnez s1, 2b
  lw t1, 0(t2)
  li t3, 4
  bne t1, t3, 2b
  li t0, 0x100000
  li t1, 0x5555
  sw t1, 0(t0)
3:
  j 3b
.size _start, . - _start
.globl f
.type f, @function
f:
  addi a0, a0, 1
  addi a0, a0, -1
  ret
.size f, . - f
.globl trap
.type trap, @function
trap:
  mret
.size trap, . - trap
.bss
.balign 4096
stacks:
  .skip 4 * 4096
ended:
  .skip 8
"""
QEMU = "qemu-system-riscv64 -M virt -m 128M"
PROGRAM = """
fbt::f:entry {
    @[*(uint64_t *)regs[R_SP] == arg0, *(uint64_t *)(regs[R_SP] + 2040) == arg0, cpu == (arg0 & 7)] = count();
    @depth = max(stackdepth);
}
"""


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Path]:
    """Makes the image, with so many calls of each CPU."""
    compiler = MACHINES["riscv64"].compiler
    needs(compiler, "qemu-system-riscv64")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def made(calls: int) -> Path:
        source, image = tmp_path / "four.s", tmp_path / "four.elf"
        source.write_text(SOURCE.replace("CALLS", str(calls)))
        place = "-Wl,-Ttext=0x80000000,--build-id=none"
        subprocess.run([compiler, "-nostdlib", "-static", "-no-pie", place, str(source), "-o", str(image)], check=True)
        return image

    return made


def test_with_lossless_four_cpus_lose_nothing(image: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kinst.runtime.live.keeping._MOST_RECORDS", 256)
    words = ("-q", "--on", f"{QEMU} -smp 4", "-n", "fbt::f:entry { @[cpu] = count(); }", image(1000))
    lossy, lossless = kinst_run(*words), kinst_run("--lossless", *words)
    assert " drops on CPU " in lossy.stderr
    assert lossless.stderr == ""
    assert sorted(map(str.split, lossless.stdout.strip().splitlines())) == [[str(cpu), "1000"] for cpu in range(4)]


@pytest.mark.long
@pytest.mark.parametrize("records", [4, 64, 4096])
def test_no_record_is_torn(records: int, image: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kinst.runtime.live.keeping._MOST_RECORDS", records)
    done = kinst_run("-q", "--on", f"{QEMU} -smp 4", "-n", PROGRAM, image(2_000_000))
    assert done.returncode == 0, done.stderr
    only, depth = done.stdout.strip().splitlines()
    assert only.split()[:3] == ["1", "1", "1"]
    assert int(only.split()[3]) > 100
    assert depth.split() == ["2"]
