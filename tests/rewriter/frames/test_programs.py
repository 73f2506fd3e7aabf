"""Programs whose every instruction is counted, and who looks at their stacks: libgcc, gdb, and C++'s exceptions.

The witness of each instruction of a trampoline is gdb, by what it knows of the original instruction.
"""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from kinst.rewriter.rewriting import Source, open_source, plan_of, plan_probes
from kinst.rewriter.standalone.request import COUNT, Request, parse_request
from kinst.rewriter.writing.write import write_image
from kinst.targets.elf.header import PF_W, PF_X, PT_LOAD
from kinst.targets.image import open_image
from kinst.targets.manifest.packed import find_manifest
from kinst.targets.probe import parse_probe_names

TIMER = """
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
static volatile unsigned long seen[64];
static volatile int ticks;
static void tick(int number) { void *frames[64]; seen[backtrace(frames, 64)]++; ticks++; }
__attribute__((noinline)) int leaf(int n) { return n * 3 + 1; }
__attribute__((noinline)) int middle(int n) {
    volatile char bytes[64];
    bytes[n & 63] = n;
    return leaf(bytes[n & 63]) + leaf(n);
}
__attribute__((noinline)) int outer(int n) {
    int sum = 0;
    for (int i = 0; i < 100; i++) sum += middle(i + n);
    return sum;
}
int main(void) {
    void *frames[4];
    backtrace(frames, 4);
    signal(SIGPROF, tick);
    struct itimerval each = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_PROF, &each, 0);
    for (int sum = 0; ticks < 200;) sum += outer(sum);
    for (int depth = 0; depth < 64; depth++) if (seen[depth]) printf("%d %lu\\n", depth, seen[depth]);
    return 0;
}
"""
THROWING = """
#include <cstdio>
#include <stdexcept>
struct Counts { int *count; ~Counts() { ++*count; } };
__attribute__((noinline)) int deep(int n, int *count) {
    Counts counts{count};
    if (n == 0) throw std::runtime_error("deep");
    return deep(n - 1, count) + 1;
}
__attribute__((noinline)) int catches(int n, int *count) {
    try { return deep(n, count); } catch (std::runtime_error &) { return n; }
}
int main() {
    int count = 0, sum = 0;
    for (int n = 0; n < 50; n++) sum += catches(n, &count);
    std::printf("%d %d\\n", count, sum);
}
"""
STEPPED = """
#include <stdarg.h>
__attribute__((noinline)) int leaf(int n) { return n * 3 + 1; }
__attribute__((noinline)) int many(int n, ...) {
    va_list rest; int sum = 0;
    va_start(rest, n);
    for (int i = 0; i < n; i++) sum += va_arg(rest, int) + leaf(i);
    va_end(rest);
    return sum;
}
__attribute__((noinline)) int dynamic(int n) {
    int place[n];
    for (int i = 0; i < n; i++) place[i] = leaf(i);
    return many(3, place[0], place[n - 1], n);
}
__attribute__((noinline)) int aligned(int n) {
    _Alignas(64) volatile int at[16];
    at[n & 15] = n;
    return leaf(at[n & 15]) + n;
}
static int (*volatile pointer)(int) = leaf;
__attribute__((noinline)) int pointed(int n) { return pointer(n) + (n > 3 ? dynamic(n) : pointer(n + 1)); }
__attribute__((noinline)) int tail(int n) { return n & 1 ? leaf(n) : pointed(n); }
__attribute__((noinline)) double mixed(double x, int n) { return n ? mixed(x * 1.5, n - 1) + tail(n) + aligned(n) : x; }
int main(void) { int sum = 0; for (int n = 1; n < 9; n++) sum += mixed(n, n); return sum & 1; }
"""
NAMES = ",".join(f"kinst::{one}:" for one in ["leaf", "many", "dynamic", "aligned", "pointed", "tail", "mixed", "main"])
RECORD = "record:arg0,arg1,time"
MACHINES = {"arm64": ("aarch64-linux-gnu", "qemu-aarch64"), "riscv64": ("riscv64-linux-gnu", "qemu-riscv64")}


def need(*tools: str) -> None:
    for tool in tools:
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool}")


def compiled(source: str, out: Path, *options: str, compiler: str = "gcc", language: str = "c") -> Path:
    need(compiler)
    command = [compiler, "-O2", "-g", f"-x{language}", "-", "-o", str(out), *options]
    subprocess.run(command, input=source.encode(), check=True)
    return out


def counted(path: Path, request: Request = COUNT, probes: str = "kinst:::") -> Path:
    """The program with probes at all instructions."""
    opened, out = open_source(Source(path)), path.with_suffix(".alone")
    resolution, _ = plan_probes(opened, parse_probe_names(probes))
    write_image(plan_of(opened, resolution, alone=request), out)
    return out


def recorded(path: Path, probes: str = "kinst:::") -> Path:
    return counted(path, parse_request(RECORD, 64, None, open_image(path).facts), probes)


LINKED = {"pie": (), "static": ("-static",), "static-pie": ("-static-pie",), "no-pie": ("-no-pie",)}


@pytest.mark.parametrize("linked", ["pie", *(pytest.param(one, marks=pytest.mark.long) for one in [*LINKED][1:])])
def test_a_handler_of_a_signal_sees_all_callers(linked: str, tmp_path: Path) -> None:
    out = counted(compiled(TIMER, tmp_path / "timer", *LINKED[linked]))
    lines = subprocess.run([out], capture_output=True, check=True, timeout=60, text=True).stdout.splitlines()
    depths = {int(line.split()[0]) for line in lines}
    # The handler, the signal's frame, main and what calls it; outer, middle and leaf if they were interrupted.
    assert min(depths) >= 5
    assert max(depths) >= 8


@pytest.mark.parametrize("linked", ["pie", pytest.param("static", marks=pytest.mark.long)])
def test_exceptions_pass_counted_functions(linked: str, tmp_path: Path) -> None:
    out = counted(compiled(THROWING, tmp_path / "throwing", *LINKED[linked], compiler="g++", language="c++"))
    assert subprocess.run([out], capture_output=True, check=True, text=True).stdout == "1275 1225\n"


def compared(out: Path, target: list[str], gdb: str, steps: int) -> tuple[int, int, str]:
    """Instructions of trampolines that gdb was at, how many of these were different ones, and what it printed."""
    image = open_image(out)
    manifest, main = find_manifest(image), image.symbols.address_of("main")
    assert manifest is not None
    assert main is not None
    address, size = manifest.trampolines
    environment = os.environ | {
        "FIRST": str(address),
        "END": str(address + size),
        "STEPS": str(steps),
        "MAIN": str(main),
    }
    script = Path(__file__).with_name("stepping.py")
    command = [gdb, "-nx", "-batch", *(word for line in target for word in ("-ex", line)), "-x", str(script), str(out)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=400, env=environment, check=False)
    last = next((line for line in run.stdout.splitlines() if line.startswith("CHECKED")), "")
    assert last, run.stdout[-2000:] + run.stderr[-2000:]
    checked, places, _ = map(int, last.split()[1:])
    return checked, places, "\n".join(line for line in run.stdout.splitlines() if line.startswith("WRONG"))


OPTIONS = {"": (), "frames": ("-fno-omit-frame-pointer",), "no-pie": ("-no-pie",), "unoptimized": ("-O0",)}


@pytest.mark.parametrize("how", ["count", pytest.param("record", marks=pytest.mark.long)])
@pytest.mark.parametrize("options", ["", *(pytest.param(one, marks=pytest.mark.long) for one in [*OPTIONS][1:])])
def test_gdb_sees_the_same_callers_at_every_instruction(how: str, options: str, tmp_path: Path) -> None:
    need("gdb")
    path = compiled(STEPPED, tmp_path / "stepped", *OPTIONS[options])
    out = counted(path, probes=NAMES) if how == "count" else recorded(path, NAMES)
    checked, places, wrong = compared(
        out, ["set confirm off", "set backtrace past-main on", "break *main", "run", "delete"], "gdb", 4000
    )
    assert not wrong
    assert checked > 1500
    assert places > 200


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.mark.long
@pytest.mark.parametrize("how", ["count", "record"])
@pytest.mark.parametrize("machine", MACHINES)
def test_gdb_sees_the_same_callers_on_other_machines(machine: str, how: str, tmp_path: Path) -> None:
    prefix, qemu = MACHINES[machine]
    need("gdb-multiarch", qemu)
    path = compiled(STEPPED, tmp_path / "stepped", "-static", compiler=f"{prefix}-gcc")
    out = counted(path, probes=NAMES) if how == "count" else recorded(path, NAMES)
    port = free_port()
    with subprocess.Popen([qemu, "-g", str(port), str(out)]) as guest:
        try:
            time.sleep(1)
            target = [
                "set confirm off",
                "set backtrace past-main on",
                f"target remote :{port}",
                "break *main",
                "continue",
                "delete",
            ]
            checked, places, wrong = compared(out, target, "gdb-multiarch", 4000)
        finally:
            guest.kill()
    assert not wrong
    assert checked > 1500
    assert places > 150


@pytest.mark.parametrize("linked", ["pie", pytest.param("static-pie", marks=pytest.mark.long)])
def test_no_segment_is_written_to_and_executed(linked: str, tmp_path: Path) -> None:
    path = compiled(TIMER, tmp_path / "timer", *LINKED[linked])
    before, after = open_image(path), open_image(counted(path))
    both = PF_W | PF_X
    assert not [one for one in after.segments if one.kind == PT_LOAD and one.flags & both == both]
    assert len(after.segments) >= len(before.segments) + 3
    loads = [one.address for one in after.segments if one.kind == PT_LOAD]
    assert loads == sorted(loads)
    # Linux before 5.18, ld.so and musl find the table by the distance of the first segment.
    table = next(
        one
        for one in after.segments
        if one.kind == PT_LOAD and one.offset <= after.header.phoff < one.offset + one.file_size
    )
    first = min((one for one in after.segments if one.kind == PT_LOAD), key=lambda one: one.address)
    assert table.address - table.offset == first.address - first.offset
