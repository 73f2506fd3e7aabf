"""What a look into the debug information of a kernel costs, from the start of a process to its answer, beside the tools
that can answer the same: gdb, llvm-dwarfdump, drgn.

Every way is a process of its own without any index kept from before, but "kept", which is asked for the second time;
the file is in the page cache. Ways are run in turns and medians compared (what takes longer than ten seconds is run
once). drgn is no part of the project: with `pip install drgn` its column appears.
"""

import importlib.util
import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.images import CACHE

MACHINES: Final = ("amd64", "arm64", "riscv64")
REPEATS: Final = 3
SLOW: Final = 10.0  # seconds; what takes longer is run once
STRUCTS: Final = ("task_struct", "file", "dentry", "inode", "sk_buff")
VARIABLES: Final = ("jiffies", "init_task", "vm_swappiness")
FEW: Final = "vfs_create"
MOST: Final = {  # with the most copies of all
    "amd64": "arch_test_bit", "arm64": "alternative_has_feature_likely", "riscv64": "arch_static_branch"
}  # fmt: skip
# Runs a command and prints how long it took and how much memory it had: a small process, since a child begins with the
# peak of its parent.
_LAUNCHER: Final = """
import json, os, sys, time
start, nothing = time.perf_counter(), os.open(os.devnull, os.O_RDWR)
redirect = [(os.POSIX_SPAWN_DUP2, nothing, one) for one in (0, 1, 2)]
child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=redirect)
_, status, usage = os.wait4(child, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), time.perf_counter() - start, usage.ru_maxrss / 1024]))
"""
_OURS: Final = """
import sys
from pathlib import Path
from kinst.targets.c_types import size_of
from kinst.targets.image import open_image
from kinst.targets.debuginfo import file_types, image_types
kind, path, names = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
if kind == "DWARF":
    file_types.btf_types = lambda *_: None
types = image_types.image_types(open_image(path))
for name in names:
    found = types.type_named(name) if name.startswith("struct ") else getattr(types.symbol(name), "type", None)
    assert found is not None, name
    getattr(found, "members", None)
"""
_INLINECALL: Final = "from kinst.rewriter.inlining.inlinecall_cli import inlinecall; inlinecall()"
_DRGN: Final = """
import sys
import drgn
machine = {"amd64": "X86_64", "arm64": "AARCH64", "riscv64": "RISCV64"}[sys.argv[1]]
program = drgn.Program(drgn.Platform(getattr(drgn.Architecture, machine)))
program.extra_module("vmlinux", create=True).try_file(sys.argv[2], force=True)
for name in sys.argv[3:]:
    program.type(name).members if name.startswith("struct ") else program.variable(name).type_
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds and megabytes of one process."""

    seconds: float
    megabytes: float


@dataclass(frozen=True, slots=True)
class Way:
    """A command that answers; `tool` is what must be there for it."""

    name: str
    command: tuple[str, ...]


def cost(command: tuple[str, ...]) -> Cost | None:
    """Run it once; None if it cannot answer."""
    result = subprocess.run(
        [sys.executable, "-S", "-c", _LAUNCHER, *command], capture_output=True, text=True, check=True
    )
    status, seconds, megabytes = json.loads(result.stdout)
    return Cost(seconds, megabytes) if status == 0 else None


def measured(ways: list[Way]) -> dict[str, Cost]:
    """Medians by name of the way, of those that can answer."""
    costs: dict[str, list[Cost]] = {way.name: [] for way in ways}
    failed = set[str]()
    for _ in range(REPEATS):
        for way in ways:
            known = costs[way.name]
            if way.name in failed or (known and known[-1].seconds > SLOW):
                continue
            found = cost(way.command)
            if found is None:
                failed.add(way.name)
            else:
                known.append(found)
    return {
        name: Cost(statistics.median(one.seconds for one in found), max(one.megabytes for one in found))
        for name, found in costs.items()
        if name not in failed
    }


def _python(text: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-c", text, *arguments)


def _gdb(path: Path, *commands: str) -> tuple[str, ...]:
    program = "gdb-multiarch" if shutil.which("gdb-multiarch") else "gdb"
    return (program, "-nx", "-batch", *(word for command in commands for word in ("-ex", command)), str(path))


def _types(machine: str, path: Path, names: tuple[str, ...], questions: tuple[str, ...]) -> list[Way]:
    return [
        Way("ours", _python(_OURS, "BTF", str(path), *names)),
        Way("ours, no BTF", _python(_OURS, "DWARF", str(path), *names)),
        Way("gdb", _gdb(path, *questions)),
        Way("drgn", _python(_DRGN, machine, str(path), *names)),
    ]


def _structs(machine: str, path: Path) -> list[Way]:
    names = tuple(f"struct {name}" for name in STRUCTS)
    return _types(machine, path, names, tuple(f"ptype /o {name}" for name in names))


def _variables(machine: str, path: Path) -> list[Way]:
    return _types(machine, path, VARIABLES, tuple(f"whatis {name}" for name in VARIABLES))


def _inlines(names: Callable[[str], str]) -> Callable[[str, Path], list[Way]]:
    """gdb sets a breakpoint at every copy; llvm-dwarfdump prints the entries of that name, not even the copies."""

    def ways(machine: str, path: Path) -> list[Way]:
        name = names(machine)
        return [
            Way("ours", _python(_INLINECALL, name, str(path), "--no-cache")),
            Way("ours, kept", _python(_INLINECALL, name, str(path))),
            Way("gdb", _gdb(path, f"break {name}")),
            Way("llvm-dwarfdump", ("llvm-dwarfdump", f"--name={name}", str(path))),
        ]

    return ways


ROWS: Final[dict[str, Callable[[str, Path], list[Way]]]] = {
    f"{len(STRUCTS)} structs": _structs,
    f"{len(VARIABLES)} variables": _variables,
    f"inlined {FEW}": _inlines(lambda _: FEW),
    "the most inlined": _inlines(MOST.__getitem__),
}


def _absent() -> Iterator[str]:
    for tool, programs in {"gdb": ("gdb-multiarch", "gdb"), "llvm-dwarfdump": ("llvm-dwarfdump",)}.items():
        if not any(map(shutil.which, programs)):
            yield tool
    if importlib.util.find_spec("drgn") is None:
        yield "drgn"


def main() -> None:
    """Print the table."""
    print("seconds from start to answer, and megabytes, of a look into the debug information of a kernel")
    absent = set(_absent())
    if absent:
        print(f"not installed, so not measured: {', '.join(sorted(absent))}")
    for machine in MACHINES:
        path = CACHE / f"linux-{machine}" / "image.elf"
        if not path.exists():
            print(f"linux-{machine}: not there; `poe images linux-{machine}` gets it")
            continue
        for title, ways in ROWS.items():
            _print_row(machine, title, measured([way for way in ways(machine, path) if way.name not in absent]))


def _print_row(machine: str, title: str, costs: dict[str, Cost]) -> None:
    ours, cells = costs["ours"], []
    for name, one in costs.items():
        ratio = "" if name == "ours" else f", {one.seconds / ours.seconds:.1f}x"
        cells.append(f"{name} {one.seconds:.2f} s {one.megabytes:,.0f} MB{ratio}")
    print(f"{machine:8} {title:20} {'; '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
