"""Names from other tools: which tool it was, what begins a function, and what is left out."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from kinst.targets.elf.sections import CodeRegion
from kinst.targets.elf.symbols import STT_FUNC, STT_NOTYPE, STT_OBJECT, Symbols
from kinst.targets.errors import ImageError
from kinst.targets.image import open_image
from kinst.targets.names.symbol_file import read_symbol_file
from tests.commands.in_process import kinst_run
from tests.targets.packed.test_raw import SAMPLES, raw

GHIDRA = """\
"Name","Location","Type","Namespace","Source","Reference Count","Offcut Ref Count"
"FUN_80000010","80000010","Function","Global","Default","1","0"
"vfs_read","ram:80000040","Thunk Function","Global","User Defined","1","0"
"table, of them","80001000","Data Label","Global","Analysis","1","0"
"LAB_80000044","0x80000044","Label","Global","Default","1","0"
"local_18","Stack[-0x18]","Local Variable","main","Default","1","0"
"printf","EXTERNAL:00000001","External Function","<EXTERNAL>","Imported","1","0"
"std","NO ADDRESS","Namespace","Global","Analysis","1","0"
"""
GHIDRA_FUNCTIONS = "Location\tName\tFunction Signature\tFunction Size\n80000010\tstart\tvoid start(int, int)\t48\n"
IDA = """
 Start         Length     Name                   Class
 0001:00000000 000001000H .text                  CODE
 0002:00001000 000000200H .data                  DATA


  Address         Publics by Value

 0001:00000010       start
 0001:00000040       stepanim(anim *, int)
 0001:00000044       loc_44
 0002:00001000       counters

Program entry point at 0001:00000010
"""
OBJDUMP = """
k.elf:     file format elf64-littleriscv

SYMBOL TABLE:
0000000080000000 l    d  .text\t0000000000000000 .text
0000000000000000 l    df *ABS*\t0000000000000000 a.c
0000000080000010 g     F .text\t0000000000000030 start
0000000080000040 l     F .text\t0000000000000004 .hidden step one
0000000080000044 l       .text\t0000000000000000 again
0000000080001000 g     O .data\t0000000000000200 counters
0000000000000000         *UND*\t0000000000000000 elsewhere
"""


def read(folder: Path, text: str, *regions: CodeRegion) -> list[tuple[str, int, int, int]]:
    """Name, address, size and kind of each symbol."""
    path = folder / "names"
    path.write_text(text)
    return listed(read_symbol_file(path, regions=regions))


def listed(symbols: Symbols) -> list[tuple[str, int, int, int]]:
    columns = symbols.names(np.arange(len(symbols))), symbols.address, symbols.size, symbols.kind
    return [(name, int(address), int(size), int(kind)) for name, address, size, kind in zip(*columns, strict=True)]


def test_ghidra_says_what_is_a_function(tmp_path: Path) -> None:
    assert read(tmp_path, GHIDRA) == [
        ("FUN_80000010", 0x8000_0010, 0, STT_FUNC),
        ("vfs_read", 0x8000_0040, 0, STT_FUNC),
        ("table, of them", 0x8000_1000, 0, STT_OBJECT),
        ("LAB_80000044", 0x8000_0044, 0, STT_NOTYPE),
    ]
    assert read(tmp_path, "\ufeff" + GHIDRA_FUNCTIONS) == [("start", 0x8000_0010, 48, STT_FUNC)]
    with pytest.raises(ImageError, match=r"names:3: 1 columns, where the first line has 7"):
        read(tmp_path, "\n".join([*GHIDRA.splitlines()[:2], "x"]))
    with pytest.raises(ImageError, match="names: no symbols"):
        read(tmp_path, GHIDRA.splitlines()[0] + "\n")


def test_ida_counts_from_its_segment(tmp_path: Path) -> None:
    code = CodeRegion(0x8000_0000, 0x1000, 0x1000)
    assert read(tmp_path, IDA, code) == [
        ("start", 0x8000_0010, 0, STT_FUNC),
        ("stepanim", 0x8000_0040, 0, STT_FUNC),
        ("loc_44", 0x8000_0044, 0, STT_NOTYPE),
        ("counters", 0x8000_1000, 0, STT_OBJECT),
    ]
    assert read(tmp_path, IDA.replace(":0000", ":8000"), code)[0][1] == 0x8000_0010
    with pytest.raises(ImageError, match="symbols of another image: its code is at 0x40000010 to 0x40000040"):
        read(tmp_path, IDA.replace(":0000", ":4000"), code)


def test_objdump_says_what_is_a_function(tmp_path: Path) -> None:
    assert read(tmp_path, OBJDUMP) == [
        ("start", 0x8000_0010, 0x30, STT_FUNC),
        ("step one", 0x8000_0040, 4, STT_FUNC),
        ("again", 0x8000_0044, 0, STT_NOTYPE),
        ("counters", 0x8000_1000, 0x200, STT_OBJECT),
    ]


@pytest.mark.parametrize("words", [("nm", "-S"), ("objdump", "-t")])
def test_what_binutils_print_names_a_raw_binary(words: tuple[str, ...], tmp_path: Path) -> None:
    if shutil.which(words[0]) is None:
        pytest.skip(f"no {words[0]}")
    elf, names = SAMPLES / "kernel-riscv64.elf", tmp_path / "names"
    names.write_bytes(subprocess.run([*words, elf], check=True, capture_output=True).stdout)
    path, where = raw(tmp_path, "riscv64")
    program = "fbt:::entry { @[probefunc] = count(); }"
    said = kinst_run(elf, "-qn", program, "--clock", "icount").stdout
    found = kinst_run(path, "--raw", where, "--symbols", names, "-qn", program, "--clock", "icount")
    assert (found.returncode, set(said.splitlines()) - set(found.stdout.splitlines())) == (0, set())
    functions = {name: row for name, *row in listed(read_symbol_file(names)) if row[2] == STT_FUNC}
    image = listed(open_image(elf).symbols)
    assert {name for name, _, size, kind in image if kind == STT_FUNC and size} <= functions.keys()
    assert STT_OBJECT not in [row[2] for row in functions.values()]
