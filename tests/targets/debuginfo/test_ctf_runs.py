"""A guest whose only types are CTF: a D program prints what it prints by DWARF."""

import subprocess
from pathlib import Path

import pytest

from tests.commands.in_process import kinst_run
from tests.gated import long_after_first
from tests.targets.debuginfo.compiled import COMPILERS, compiled

START = {
    "arm64": ("adrp x0, stack; add x0, x0, :lo12:stack; add sp, x0, 4096; b begin", "wfi"),
    "riscv64": ("la sp, stack + 4096; j begin", "wfi"),
}
SOURCE = """
struct point { short x; int y; unsigned a : 3, b : 17; char name[8]; };
typedef struct point point_t; enum mode { SLOW, FAST = 7 };
point_t table[2][3]; char stack[4096] __attribute__((aligned(16)));
__asm__(".globl start\\nstart: %s");
static __attribute__((noinline)) long sum(point_t *p, enum mode how) { __asm__(""); return p->x + p->y + how; }
void begin(void) {
  point_t p = { 1, 2, 3, 4, "first" };
  for (int i = 0; i < 3; i++) { p.x = i; table[1][2].y += sum(&p, i ? FAST : SLOW); }
  for (;;) __asm__ volatile("%s");
}
"""
PROGRAM = """
    fbt::sum:entry { trace(args[1]); print(*args[0]); trace(args[0]->b); trace(stringof(args[0]->name)); }
    fbt::sum:return { trace(args[1]); }
    fbt::sum:return /++n == 3/ { exit(0); }
    END { print(`table[1]); trace(sizeof (struct point)); print((enum mode)7); trace(((point_t *)&`table[1][2])->y); }
"""
LINK = {"arm64": ("-Wl,-Ttext=0x40200000",), "riscv64": ("-Wl,-Ttext=0x80000000", "-mcmodel=medany")}


def said(path: Path) -> str:
    result = kinst_run(path, "-v", "--timeout", "20s", "-n", PROGRAM)
    assert result.returncode == 0, result.stderr
    source = next(line for line in result.stderr.splitlines() if "types of" in line)
    return f"{source}\n{result.stdout}"


@pytest.mark.parametrize("machine", long_after_first(tuple(START)))
def test_a_run_without_dwarf_prints_the_same(tmp_path: Path, machine: str) -> None:
    start, wait = START[machine]
    image = compiled(
        tmp_path,
        machine,
        {"a.c": SOURCE % (start, wait)},
        "-gdwarf-5",
        "-gctf",
        "-Wl,-N,--ctf-variables",
        *LINK[machine],
    )
    bare = tmp_path / "bare" / "image.elf"
    bare.parent.mkdir()
    prefix = COMPILERS[machine].removesuffix("gcc")
    subprocess.run([f"{prefix}objcopy", "--strip-debug", image.path, bare], check=True)
    by_dwarf, by_ctf = said(image.path), said(bare)
    assert by_dwarf.startswith("kinst-run: types of image: DWARF of image.elf\n")
    assert by_ctf.startswith("kinst-run: types of image: CTF (.ctf) of image.elf\n")
    assert by_ctf.partition("\n")[2] == by_dwarf.partition("\n")[2]
    assert "unsigned int b :17 = 0x4" in by_ctf and "enum mode FAST" in by_ctf
