"""A little kernel with Linux's boot header, under QEMU: it turns the MMU on by tables that map nothing but itself."""

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from kinst.rewriter.assemble import assemble
from kinst.rewriter.naming.resolve import resolve
from kinst.rewriter.rewriting import Source, open_source
from kinst.rewriter.standalone.plan import plan_standalone
from kinst.rewriter.standalone.request import COUNT, Request
from kinst.rewriter.writing.write import write_image
from kinst.runtime.live.room.layout import in_room, layout_of, with_room
from kinst.targets.arch.arm64 import ARM64
from kinst.targets.image import open_image
from kinst.targets.probe import parse_probe_name
from kinst.targets.standalone import Action
from tests.commands.in_process import kinst_run
from tests.runtime.live.qemus import needs
from tests.writers.boot_images import boot_header
from tests.writers.elf import EM_AARCH64, Part, Symbol, elf64

LINK = 0xFFFF_8000_0800_0000
TABLES = LINK + 0x1_0000  # writable
QEMU = "qemu-system-aarch64 -M virt -cpu cortex-a57"


def adr(register: int, distance: int) -> int:
    """The word of ADR, which keystone does not assemble for high addresses."""
    return 0x1000_0000 | (distance & 3) << 29 | (distance >> 2 & 0x7_FFFF) << 5 | register


# 4 KiB pages and 48 bits: TTBR1 has a block of 2 MiB where the kernel is to be; TTBR0 one of 1 GiB, without the room's
# attributes.
BEGIN = """
    .word {text:#x}
    .word {tables:#x}
    bl {before}
    add x2, x1, #0x1000
    add x3, x1, #0x2000
    add x4, x1, #0x3000
    add x5, x1, #0x4000
    movz x7, #0x701
"""
MAP = """
    orr x6, x2, #3
    str x6, [x1, #{first}]
    orr x6, x3, #3
    str x6, [x2, #{second}]
    orr x6, x0, x7
    str x6, [x3, #{third}]
"""
LOAD = """
    orr x6, x5, #3
    str x6, [x4]
    movz x6, #0x4000, lsl #16
    orr x6, x6, x7
    str x6, [x5, #8]
    movz x6, #0xff
    msr mair_el1, x6
    movz x6, #0x3510
    movk x6, #0xb510, lsl #16
    movk x6, #5, lsl #32
    msr tcr_el1, x6
    msr ttbr0_el1, x4
    msr ttbr1_el1, x1
    isb
"""
ON = """
    mrs x6, sctlr_el1
    orr x6, x6, #1
    msr sctlr_el1, x6
    isb
"""
# Linux before 6.0 does so when it has read its seed.
OFF = """
    mrs x6, sctlr_el1
    movz x8, #1
    bic x6, x6, x8
    msr sctlr_el1, x6
    isb
    str xzr, [x1, #{first}]
    str xzr, [x2, #{second}]
    str xzr, [x3, #{third}]
    tlbi vmalle1
    dsb sy
    isb
"""
GO = """
    movz x6, #{at[3]}, lsl #48
    movk x6, #{at[2]}, lsl #32
    movk x6, #{at[1]}, lsl #16
    movk x6, #0x800
    br x6
"""
MAIN = f"""
    movz x20, #5
    .word {adr(0, TABLES + 0xF000 - LINK - 0x804):#x}
    mov sp, x0
    bl {LINK + 0x900:#x}
    sub x20, x20, #1
    cbnz x20, {LINK + 0x80C:#x}
    movz x0, #0x8400, lsl #16
    movk x0, #8
    hvc #0
"""
DEAD = "; ".join([*(f"mov x{number}, #1" for number in range(9, 17)), "ret"])  # what a trampoline may use
FUNCTIONS = {"start": 0x100, "main": 0x800, "work": 0x900, "before": 0xA00}


EXPECTED = {f"sub_{LINK:x}": 1, "start": 1, "before": 1, "main": 1, "work": 5}


def start(*places: int) -> str:
    """The code that turns the MMU on, with the kernel so far from where it is linked; if there is another place, once
    more for that."""

    def at(by: int, *parts: str) -> str:
        place = LINK + by
        return "".join(parts).format(
            text=adr(0, -0x100),
            tables=adr(1, TABLES - LINK - 0x104),
            before=f"{LINK + FUNCTIONS['before']:#x}",
            first=(place >> 39 & 511) * 8,
            second=(place >> 30 & 511) * 8,
            third=(place >> 21 & 511) * 8,
            at=[place >> shift & 0xFFFF for shift in (0, 16, 32, 48)],
        )

    first, *others = places
    again = [at(first, OFF) + at(one, MAP, ON) for one in others]
    return at(first, BEGIN, MAP, LOAD, ON) + "".join(again) + at(places[-1], GO)


def kernel(*places: int, labels: Sequence[Symbol] = ()) -> bytes:
    """Its file. It maps itself so far from where it is linked, at one place after the other."""
    code = {
        "start": start(*(places or (0,))),
        "main": MAIN,
        "work": DEAD,
        "before": DEAD,
    }
    text = bytearray(0x1000)
    text[:64] = boot_header(b"ARM\x64", 0x4_0000)
    text[:8] = assemble(ARM64, f"b {LINK + FUNCTIONS['start']:#x}; nop", LINK)
    symbols = [*labels]
    for name, at in FUNCTIONS.items():
        found = assemble(ARM64, code[name], LINK + at)
        text[at : at + len(found)] = found
        symbols.append(Symbol(name, LINK + at, len(found)))
    parts = [Part(".text", LINK, bytes(text), 5), Part(".data", TABLES, bytes(0x1_0000), 6)]
    return elf64(EM_AARCH64, LINK, parts, symbols)


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = tmp_path / "kernel.elf"
    found.write_bytes(kernel())
    return found


def run(image: Path, program: str, *more: str) -> Mapping[str, int]:
    """The values of the only aggregation by its only key."""
    done = kinst_run("-q", "--format", "json", "--timeout", "20s", "--on", QEMU, *more, "-n", program, image)
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)["dtrace"]
    assert document["end"]["reason"] == "power-off"
    (found,) = document["aggregations"]
    return {str(one["keys"][0]): one["value"] for one in found["aggregation-data"]}


def test_functions_count_before_and_after_the_mmu_is_on(image: Path) -> None:
    needs("qemu-system-aarch64")
    assert run(image, "fbt:::entry { @[probefunc] = count(); }") == EXPECTED


@pytest.mark.parametrize("by", [1 << 30, pytest.param((5 << 39) + (3 << 21), marks=pytest.mark.long), -(1 << 27)])
def test_a_kernel_that_moves_has_its_room_and_its_names(image: Path, by: int) -> None:
    needs("qemu-system-aarch64")
    image.write_bytes(kernel(by))
    assert run(image, "fbt:::entry { @[probefunc] = count(); }") == EXPECTED
    # What an argument points to is at the new place; a caller is told by its name.
    (key,) = run(image, "fbt::work:entry { @[mod(arg0)] = count(); }")
    assert key == str({"address": f"{LINK:#x}", "symbol": "kernel"})
    done = kinst_run(
        "-qv", "--timeout", "20s", "--on", QEMU, "-n", "fbt::work:entry { @[func(caller)] = count(); }", image
    )
    assert f"the kernel moved itself by {by:#x} bytes (KASLR)" in done.stderr
    assert "kernel`main" in done.stdout


def linux(*names: str) -> list[Symbol]:
    """Labels of Linux, in which all of `start` is code that turns the MMU on; and other names."""
    identity = [Symbol("__idmap_text_start", LINK + 0x100, 0), Symbol("__idmap_text_end", LINK + 0x800, 0)]
    return [*identity, *(Symbol(name, LINK + 0xB00 + 8 * row, 8) for row, name in enumerate(names))]


def test_a_kernel_that_makes_its_tables_anew_moves_as_well(image: Path) -> None:
    needs("qemu-system-aarch64")
    image.write_bytes(kernel(0, (5 << 39) + (3 << 21), labels=linux("vmlist", "vmalloc_init")))
    expected = {name: count for name, count in EXPECTED.items() if name != "start"}  # such code has no probes in Linux
    assert run(image, "fbt:::entry { @[probefunc] = count(); }") == expected


def test_a_linux_that_cannot_be_told_of_the_room_is_told_of(image: Path) -> None:
    """It would put modules there."""
    needs("qemu-system-aarch64")
    image.write_bytes(kernel(1 << 30, labels=linux("vmalloc_init")))
    done = kinst_run("-q", "--timeout", "20s", "--on", QEMU, "-n", "fbt::work:entry { @ = count(); }", image)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "by 0x40000000 bytes (KASLR), and has no list" in done.stderr
    assert "add nokaslr to --append" in done.stderr


def test_a_kernel_that_moves_by_less_than_its_size_is_told_of(image: Path) -> None:
    """Names of addresses would be ambiguous."""
    needs("qemu-system-aarch64")
    image.write_bytes(kernel(2 << 20))
    done = kinst_run("-q", "--timeout", "20s", "--on", QEMU, "-n", "fbt::work:entry { @ = count(); }", image)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "the kernel moves itself by 0x200000 bytes (KASLR), less than its size" in done.stderr


def test_a_ring_leaves_most_of_the_memory_to_the_guest() -> None:
    request = in_room(Request(Action.RECORD, ("arg0",), 1 << 20, None), 32 << 20)
    assert request.has_room
    assert 1 << 20 < request.kept_size <= 4 << 20


def test_a_header_like_the_kernels_is_in_front_and_leads_to_it(image: Path, tmp_path: Path) -> None:
    resolution = resolve(open_source(Source(image)).program, [parse_probe_name("fbt:::entry")])
    plan = plan_standalone(resolution, in_room(COUNT, 1 << 30))
    write_image(plan, tmp_path / "alone.elf")
    alone = open_image(tmp_path / "alone.elf")
    room = layout_of(alone, plan.manifest)
    assert room is not None
    assert room.size % (2 << 20) == 0
    assert room.start < room.tables.start < room.tables.stop == room.data.start < room.code.start < room.end == LINK
    pieces = dict(with_room(alone, room))
    jump, _, offset, size = struct.unpack_from("<IIQQ", pieces[0])
    assert (jump, offset, size) == (0x1400_0000 | room.size >> 2, 0, 0x4_0000 + room.size)
    assert pieces[0][56:60] == b"ARM\x64"
    assert pieces[room.size][:64] == alone.read(LINK, 64)
    assert pieces[room.code.start - room.start] == alone.read(room.code.start, len(room.code))
