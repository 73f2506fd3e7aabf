"""Kernels with damaged tables of their own: the names of symbols, tracepoints and their events, system calls."""

import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

from kinst.rewriter.cli import list_probes as kinst_list
from kinst.runtime.cli import run as kinst_run
from kinst.targets.image import open_image
from tests.fuzz.bytes_changed import Damage, damages
from tests.fuzz.kind import Kind, command
from tests.runtime.patched import test_tracepoints as tracing
from tests.targets import test_kallsyms as naming
from tests.writers.boot_images import kallsyms
from tests.writers.elf import EM_X86_64, Part, Symbol, elf64

# -- names of symbols -------------------------------------------------------------------------------------------------


@cache
def _named() -> tuple[tuple[bytes, range], ...]:
    """Kernels of each layout, and where in them the tables are."""
    tables = [kallsyms(naming.symbols(1024), naming.TEXT + naming.AT, layout) for layout in naming.LAYOUTS]
    return tuple((naming.kernel(one), range(naming.AT, naming.AT + len(one))) for one in tables)


def _names(damage: Damage, _folder: Path) -> None:
    data, place = _named()[damage.base]
    naming.found(damage.of(data, [place]))


# -- tracepoints ------------------------------------------------------------------------------------------------------

_TABLES: Final = ("__jump_table", "_ftrace_events", ".data", ".symtab", ".rodata")


@cache
def _traced() -> tuple[bytes, tuple[range, ...]]:
    with tempfile.TemporaryDirectory() as name:
        path = tracing.compiled("amd64", Path(name))
        image = open_image(path)
        found = (image.section(one) for one in _TABLES)
        places = tuple(range(one.offset, one.offset + one.size) for one in found if one is not None)
        return path.read_bytes(), places


def _tracepoints(damage: Damage, folder: Path) -> None:
    if shutil.which("gcc") is None:
        return
    data, places = _traced()
    image = folder / "image.elf"
    image.write_bytes(damage.of(data, places))
    command(kinst_list, image, "sdt:::")
    limits = ("--clock", "icount", "--timeout", "300us", "--wall-timeout", "5s")
    command(
        kinst_run,
        "-qZ",
        *limits,
        "--call",
        "work(3)",
        image,
        "-n",
        "sdt::: { trace(args[0]); @[probename] = count(); }",
    )


# -- system calls -----------------------------------------------------------------------------------------------------

_VIRTUAL: Final = 0xFFFF_FFFF_8000_0000  # of physical address 0
_BASE: Final = _VIRTUAL + 0x100_0000
_DATA: Final = _BASE + 0x1000
_BANNER: Final = b"Linux version 6.1.0 (x) #1\n\0"
_TEXTS: Final = (
    b"sys_read\0",
    b"unsigned int\0",
    b"char __user *\0",
    b"size_t\0",
    b"struct later *\0",
    b"a[\x1b[31m]\0",
)


@cache
def _called() -> tuple[bytes, range]:
    """Handlers and what the kernel says of their arguments: struct syscall_metadata, the types, the texts."""
    texts, at = dict[int, int](), 0x200
    for number, text in enumerate(_TEXTS):
        texts[number] = _DATA + at
        at += len(text)
    types = b"".join(texts[number].to_bytes(8, "little") for number in (1, 2, 3, 4, 5))
    record = (
        texts[0].to_bytes(8, "little") + bytes(4) + (5).to_bytes(4, "little") + (_DATA + 0x100).to_bytes(8, "little")
    )
    content = (record.ljust(0x100, b"\0") + types).ljust(0x200, b"\0") + b"".join(_TEXTS) + bytes(128)
    code = bytes.fromhex("554889e55dc3") + bytes.fromhex("90") * 10
    parts = [
        Part(name, address, text, flags, load_address=address - _VIRTUAL)
        for name, address, text, flags in (
            (".text", _BASE, code * 4, 5),
            (".data", _DATA, content, 6),
            (".rodata", _DATA + 0x1000, _BANNER, 4),
        )
    ]
    symbols = [
        Symbol("__x64_sys_read", _BASE, 6),
        Symbol("__x64_sys_write", _BASE + 16, 6),
        Symbol("__syscall_meta__read", _DATA, 0x100),
        Symbol("linux_banner", _DATA + 0x1000, len(_BANNER)),
    ]
    data = elf64(EM_X86_64, _BASE, parts, symbols)
    start = data.index(content)
    return data, range(start, start + len(content))


def _calls(damage: Damage, folder: Path) -> None:
    data, place = _called()
    image = folder / "vmlinux"
    image.write_bytes(damage.of(data, [place]))
    command(kinst_run, "-lv", image, "-n", "syscall:::")
    command(kinst_run, "-e", image, "-n", "syscall::read:entry { trace(args[0]); trace(args[3]); }")


KALLSYMS: Final = Kind("kallsyms", damages(len(naming.LAYOUTS)), _names)
TRACEPOINTS: Final = Kind("tracepoints", damages(1), _tracepoints)
SYSTEM_CALLS: Final = Kind("system-calls", damages(1), _calls)
