"""Inlined copies in what compilers make, in every version and shape of DWARF, against llvm-dwarfdump."""

import os
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from kinst.targets.debuginfo.inline_search import InlineSearch
from kinst.targets.debuginfo.inlined import InlinedCopy
from kinst.targets.elf.file import ElfFile, open_elf
from kinst.targets.elf.header import FileKind
from kinst.targets.image import open_image
from tests.targets.debuginfo.dumped import DumpedCopy, DumpedEntry, copies, dumped

HEADER = """
extern volatile int device;
void __attribute__((cold, noinline)) complain(int why);
static inline int leaf(int value) { device = value; return device + 1; }
static inline __attribute__((always_inline)) int twice(int value) { return leaf(value) + leaf(value + 1); }
static inline __attribute__((always_inline)) int checked(int value)
{
    if (__builtin_expect(value > 100, 0)) { complain(value); device = 7; complain(value + 1); }
    return value * device;
}
"""
SOURCES = {
    "first.c": HEADER
    + """
int first(int value) { int sum = twice(value); while (device) sum += checked(device) + leaf(3); return sum; }
int other(int value) { return checked(value) + checked(value + 1); }
""",
    "second.c": HEADER
    + """
volatile int device;
void complain(int why) { device = why; }
int first(int); int other(int);
static int countdown(int value) { return value ? leaf(value) + countdown(value - 1) : 0; }
int second(int value) { return twice(first(value)) + other(value) + countdown(3); }
void start(void) { second(device); for (;;); }
""",
}
NAMES = ("leaf", "twice", "checked", "countdown")
GCC = {"amd64": "gcc", "arm64": "aarch64-linux-gnu-gcc", "riscv64": "riscv64-linux-gnu-gcc"}
COMMON = ("-O2", "-ffreestanding", "-fno-pic", "-fno-asynchronous-unwind-tables")
LINKED = ("-nostdlib", "-static", "-no-pie", "-Wl,-e,start")
CLANG = ("x86_64-linux-gnu", "aarch64-linux-gnu", "riscv64-linux-gnu")


def build(folder: Path, compiler: str, *options: str) -> Path:
    """One file out of all sources; skips without the compiler, but for the gate, which has it."""
    if shutil.which(compiler) is None:
        assert not os.environ.get("KINST_REQUIRE_TOOLS"), f"no {compiler}"
        pytest.skip(f"no {compiler}")
    for name, text in SOURCES.items():
        (folder / name).write_text(text)
    output = folder / "image.elf"
    command = [compiler, *COMMON, *options, "-o", str(output), *(str(folder / name) for name in SOURCES)]
    subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder)
    return output


def objects(folder: Path, compiler: str, *options: str) -> list[Path]:
    """One ET_REL file a source."""
    if shutil.which(compiler) is None:
        assert not os.environ.get("KINST_REQUIRE_TOOLS"), f"no {compiler}"
        pytest.skip(f"no {compiler}")
    found = []
    for name, text in SOURCES.items():
        (folder / name).write_text(text)
        found.append(folder / f"{name}.o")
        subprocess.run(
            [compiler, *COMMON, *options, "-c", "-o", str(found[-1]), str(folder / name)],
            check=True, capture_output=True, text=True, cwd=folder,
        )  # fmt: skip
    return found


def expected(path: Path) -> dict[str, list[DumpedCopy]]:
    entries = list(dumped(path, "--debug-info"))
    by_offset = {entry.offset: entry for entry in entries}
    found = defaultdict[str, list[DumpedCopy]](list)
    for copy in copies(entries):
        found[name_of(by_offset, copy.function)].append(copy)
    return found


def name_of(by_offset: dict[int, DumpedEntry], offset: int) -> str:
    """The name of an entry, which may only refer to the one that has it."""
    entry = by_offset[offset]
    while "name" not in entry.values:
        entry = by_offset[entry.number("abstract_origin") or entry.number("specification") or 0]
    return entry.values["name"].split('"')[1]


def in_sections(elf: ElfFile, ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges as the dump of an ET_REL file has them, where all sections begin at 0."""
    if elf.kind is not FileKind.REL:
        return list(ranges)
    found = []
    for low, high in ranges:
        base = next(one.address for one in elf.sections if one.flags & 2 and 0 <= low - one.address < max(one.size, 1))
        found.append((low - base, high - base))
    return found


def entry_in_section(elf: ElfFile, copy: InlinedCopy) -> int:
    """The same of where a copy is entered, which may be the end of the section that it is in."""
    low = copy.ranges[0][0]
    near = next(one for one in elf.sections if one.flags & 2 and 0 <= low - one.address < max(one.size, 1))
    if elf.kind is FileKind.REL and 0 <= copy.entry - near.address <= near.size:
        return copy.entry - near.address
    return in_sections(elf, [(copy.entry, copy.entry)])[0][0]


def check(path: Path, reference: Path | None = None) -> dict[str, list[InlinedCopy]]:
    """All copies of all functions are those of the dump, with entry, line and file of the call."""
    elf = open_elf(path)
    search, wanted = InlineSearch(elf), expected(reference or path)
    assert sum(map(len, wanted.values())) >= 4
    everything = {}
    for name in {*NAMES, *wanted}:
        found = everything[name] = [copy for function in search.find(name) for copy in function.copies]
        ours = sorted((in_sections(elf, copy.ranges), copy.call.line) for copy in found)
        assert ours == sorted((list(copy.ranges), copy.call_line) for copy in wanted[name]), name
        files = sorted(Path(copy.call.file).name for copy in found)
        assert files == sorted(Path(copy.call_file).name for copy in wanted[name])
        entries = sorted(entry_in_section(elf, copy) for copy in found)
        assert entries == sorted(copy.starts for copy in wanted[name])
    return everything


@pytest.mark.parametrize("machine", GCC)
@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_versions(version: int, machine: str, tmp_path: Path) -> None:
    check(build(tmp_path, GCC[machine], f"-gdwarf-{version}", *LINKED))


@pytest.mark.parametrize(
    "options",
    [
        ("-gdwarf64", "-gdwarf-4"),
        ("-gdwarf64", "-gdwarf-5"),
        ("-gdwarf-4", "-fdebug-types-section"),
        ("-gdwarf-5", "-fdebug-types-section"),
        ("-gdwarf-2", "-gstrict-dwarf"),
        ("-gdwarf-5", "-gstrict-dwarf"),
        ("-gdwarf-4", "-flto"),
        ("-gdwarf-5", "-flto"),
        ("-gdwarf-5", "-flto", "-flto-partition=max"),
        ("-gdwarf-5", "-ffunction-sections", "-Wl,--gc-sections"),
        ("-gdwarf-4", "-freorder-blocks-and-partition"),
        ("-gdwarf-5", "-gz=zlib"),
        ("-gdwarf-4", "-gz=zlib-gnu"),
    ],
)
def test_shapes(options: tuple[str, ...], tmp_path: Path) -> None:
    check(build(tmp_path, "gcc", *options, *LINKED))


@pytest.mark.parametrize("way", ["zlib", "zlib-gnu", "zstd"])
def test_compressed_sections(way: str, tmp_path: Path) -> None:
    plain, packed = build(tmp_path, "gcc", "-gdwarf-5", *LINKED), tmp_path / "packed.elf"
    subprocess.run(["objcopy", f"--compress-debug-sections={way}", plain, packed], check=True)
    assert packed.read_bytes() != plain.read_bytes()
    check(packed, plain)


@pytest.mark.parametrize("machine", GCC)
@pytest.mark.parametrize("options", [("-gdwarf-4",), ("-gdwarf-5",), ("-gdwarf-5", "-ffunction-sections")])
def test_modules(options: tuple[str, ...], machine: str, tmp_path: Path) -> None:
    if machine == "riscv64":  # llvm-dwarfdump 14 does not know R_RISCV_SET_ULEB128 and linker relaxation's differences
        options = (*options, "-mno-relax")
    for module in objects(tmp_path, GCC[machine], *options):
        check_module(module)


def check_module(path: Path) -> None:
    found = check(path)
    symbols = open_image(path).symbols
    assert all(copy.caller_address == symbols.address_of(copy.caller) for those in found.values() for copy in those)


@pytest.mark.parametrize("target", CLANG)
@pytest.mark.parametrize("options", [("-gdwarf-4",), ("-gdwarf-5",), ("-gdwarf-5", "-gdwarf64"), ("-gdwarf-3",)])
def test_clang(options: tuple[str, ...], target: str, tmp_path: Path) -> None:
    for module in objects(tmp_path, "clang", f"--target={target}", *options):
        check_module(module)


@pytest.mark.parametrize("version", [4, 5])
def test_clang_linked(version: int, tmp_path: Path) -> None:
    """Its units have indexed strings, addresses and lists in version 5, each with its base."""
    found = check(build(tmp_path, "clang", f"-gdwarf-{version}", *LINKED))
    assert {copy.caller for copy in found["twice"]} >= {"first", "second"}


def test_cold_parts_belong_to_their_symbols(tmp_path: Path) -> None:
    path = build(tmp_path, "gcc", "-g", "-freorder-blocks-and-partition", *LINKED)
    search = InlineSearch(open_elf(path))

    ranges = [pair for function in search.find("checked") for copy in function.copies for pair in copy.ranges]
    callers = {search.caller_at(low)[0] for low, _ in ranges}

    assert {"first", "other", "first.cold", "other.cold"} <= callers


def test_what_is_not_inline(tmp_path: Path) -> None:
    elf = open_elf(build(tmp_path, "gcc", "-g", *LINKED))

    assert InlineSearch(elf).find("complain") == ()
    assert InlineSearch(elf).exists("complain") and InlineSearch(elf).exists("leaf")
    assert (
        not InlineSearch(elf).exists("device")
        and not InlineSearch(elf).exists("eaf")
        and not InlineSearch(elf).exists("")
    )
    assert InlineSearch(elf).names("*e*") == ["checked", "leaf", "twice"]
    assert InlineSearch(elf).names("complain") == []


def test_both_inline_and_out_of_line(tmp_path: Path) -> None:
    elf = open_elf(build(tmp_path, "gcc", "-g", *LINKED))
    functions = {name: InlineSearch(elf).find(name) for name in (*NAMES, "first")}

    assert {name: any(one.is_out_of_line for one in those) for name, those in functions.items() if name in NAMES} == {
        "leaf": False, "twice": False, "checked": False, "countdown": False
    }  # fmt: skip
    assert [one.declaration.line for one in functions["leaf"]] == [4, 4]
    assert all(one.declaration.file.endswith(("first.c", "second.c")) for one in functions["leaf"])


def test_methods_by_both_names(tmp_path: Path) -> None:
    """A C++ method: its class has the name, the definition outside only refers to that (DW_AT_specification)."""
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    (tmp_path / "a.cc").write_text(
        "extern volatile int device; volatile int device;"
        " namespace kernel { struct Lock { int taken; int take(int); };\n"
        "inline int Lock::take(int by) { device = by; taken += by; return device; } }\n"
        'extern "C" void start() { static kernel::Lock lock; device = lock.take(1) + lock.take(2); for (;;); }\n'
    )
    path = tmp_path / "a.elf"
    command = ["g++", *COMMON, *LINKED, "-g", "-fno-exceptions", "-o", str(path), str(tmp_path / "a.cc")]
    subprocess.run(command, check=True, capture_output=True)
    wanted = sorted(copy.ranges for copy in copies(dumped(path, "--debug-info")))

    for name in ("take", "_ZN6kernel4Lock4takeEi"):
        found = InlineSearch(open_elf(path)).find(name)
        assert [one.declaration.line for one in found] == [2]
        assert sorted(copy.ranges for copy in found[0].copies) == wanted and len(wanted) == 2
    assert InlineSearch(open_elf(path)).names("t*") == ["take"]


@pytest.mark.parametrize("version", [4, 5])
def test_modules_that_a_linker_may_relax(version: int, tmp_path: Path) -> None:
    """RISC-V leaves every difference to the linker: R_RISCV_ADD and SUB pairs. No code is moved in an ET_REL file, so
    the copies lie as in one without relaxing, which llvm-dwarfdump reads."""
    (tmp_path / "plain").mkdir()
    relaxed = objects(tmp_path, GCC["riscv64"], f"-gdwarf-{version}", "-mrelax")
    plain = objects(tmp_path / "plain", GCC["riscv64"], f"-gdwarf-{version}", "-mno-relax")
    for one, other in zip(relaxed, plain, strict=True):
        first, second = (
            [
                [(in_sections(open_elf(path), copy.ranges), copy.call.line, copy.caller) for copy in function.copies]
                for name in NAMES
                for function in InlineSearch(open_elf(path)).find(name)
            ]
            for path in (one, other)
        )
        assert first == second and sum(map(len, first)) >= 3
