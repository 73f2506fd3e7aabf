"""A program counts its own calls in Linux of three machines, static and with libraries at addresses that differ from
process to process; uprobe counts the same, process by process, and the program does not notice."""

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.images import at_hand
from tests.linux_programs import initial_file_system
from tests.system.linux_runs import run_linux
from tests.system.user_programs import COMPILERS
from tests.writers.cpio import DIRECTORY, FILE, LINK, Entry

SOURCE: Final = Path(__file__).with_name("user_probes") / "counting.c"
FUNCTIONS: Final = ("work", "even", "tail", "deep")
INIT: Final = """#!/bin/sh
/bin/busybox mount -t proc proc /proc
/bin/static 60 &
/bin/static 33
wait
/bin/dynamic 20 &
/bin/dynamic 25
wait
/bin/linked 6
/bin/busybox ln /bin/static /bin/hard
/bin/hard 7
/bin/busybox cp /bin/static /bin/copy
/bin/copy 8
/bin/busybox reboot -f
"""
# The loader and libc of the machine, where cross compilers or the host have them.
LIBRARIES: Final = {
    "amd64": ("/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6"),
    "arm64": ("/lib/ld-linux-aarch64.so.1", "/lib/libc.so.6"),
    "riscv64": ("/lib/ld-linux-riscv64-lp64d.so.1", "/lib/libc.so.6"),
}
ROOTS: Final = {"amd64": "", "arm64": "/usr/aarch64-linux-gnu", "riscv64": "/usr/riscv64-linux-gnu"}
LIBRARY: Final = "libc.so.6"
COUNTED: Final = re.compile(r"COUNTED (\S+) (\d+) work (\d+) even (\d+) tail (\d+) deep (\d+) sum \d+ code \w+")


def _initrd(machine: str, folder: Path) -> Path:
    compiler, more = COMPILERS[machine], []
    for name, flags in (("static", ("-static", "-no-pie")), ("dynamic", ())):
        built = folder / name
        subprocess.run([compiler, "-O2", "-g", *flags, "-o", built, SOURCE], check=True)
        more.append(Entry(f"bin/{name}", FILE, built.read_bytes()))
    folders = {str(parent)[1:]: None for path in LIBRARIES[machine] for parent in reversed(Path(path).parents)}
    more += [Entry(name, DIRECTORY) for name in folders if name]
    more += [Entry(path[1:], FILE, Path(ROOTS[machine] + path).read_bytes()) for path in LIBRARIES[machine]]
    more.append(Entry("bin/linked", LINK, b"static"))
    found = folder / "initrd.cpio"
    found.write_bytes(initial_file_system(machine, INIT, more))
    return found


def _program() -> str:
    places = {
        f"{name}_{kind}": ",".join(f"uprobe:/bin/{name}:{function}:{kind}" for function in FUNCTIONS)
        for name in ("static", "dynamic")
        for kind in ("entry", "return")
    }
    clauses = [f'{place} {{ @["{kind}", probefunc, pid] = count(); }}' for kind, place in places.items()]
    return f"""
        {" ".join(clauses)}
        uprobe:/bin/linked:work:entry {{ @["linked", probefunc, pid] = count(); }}
        uprobe:/bin/static:work:entry {{ @sums["argument", stringof(copyinstr(arg1)), pid] = sum(args[0]); }}
        uprobe:/bin/static:even:return {{ self->inside = 0; }}
        uprobe:/bin/static:even:entry {{ self->inside = pid; }}
        syscall:::entry /self->inside/ {{ @["inside", execname, self->inside != pid] = count(); }}
        uprobe:{LIBRARY}:usleep:entry {{ @["library", execname, pid] = count(); }}
        END {{ printa("%s %s %d %@d\\n", @); printa("%s %s %d %@d\\n", @sums); }}
    """


@pytest.mark.long
@pytest.mark.parametrize("name", at_hand("linux-6.1-amd64", "linux-6.1-arm64", "linux-6.12-riscv64"))
def test_a_program_is_counted_as_it_counts_itself(name: str, tmp_path: Path) -> None:
    initrd = _initrd(name.rpartition("-")[2], tmp_path)
    _, plain = run_linux(name, initrd)
    output, console = run_linux(name, initrd, [_program()])
    assert COUNTED.findall(console) == COUNTED.findall(plain) != []
    assert console == plain
    found = {}
    for line in output.splitlines():
        if line:
            what, text, number, count = line.split()
            found[what, text, int(number)] = int(count)
    expected: dict[tuple[str, str, int], int] = {}
    for path, process, *counts in COUNTED.findall(console):
        pid, own = int(process), "dynamic" if path == "/bin/dynamic" else "static"
        if path == "/bin/copy":
            continue  # another file
        for function, count in zip(FUNCTIONS, counts, strict=True):
            expected |= {(f"{own}_{kind}", function, pid): int(count) for kind in ("entry", "return")}
        if own == "static":
            expected["linked", "work", pid] = int(counts[0])
            calls = int(counts[1])
            expected["argument", "xyz", pid] = sum(range(calls))
            expected["argument", "abc", pid] = sum(range(0, calls, 2))
            expected["argument", "tail", pid] = sum(range(1, calls + 1))
        else:
            expected["library", "dynamic", pid] = -(-int(counts[1]) // 16)
    assert found == expected
