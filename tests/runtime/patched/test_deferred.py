"""Guests that write over their own code, as kernels do, with probes where they write: counts, what the guest reads of
its code, and instructions whose bounds move.
"""

import struct
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from kinst.rewriter.assemble import assemble
from kinst.rewriter.diffing.diff import compare
from kinst.rewriter.diffing.diff_report import text_lines
from kinst.rewriter.rewriting import Source, open_source, plan_probes
from kinst.rewriter.writing.restore import restore
from kinst.rewriter.writing.write import write_image
from kinst.runtime import Machine, api
from kinst.runtime.cli import run as run_command
from kinst.runtime.machine.configuration import End
from kinst.runtime.patched.shadows.deferred import DeferredSites
from kinst.runtime.patched.shadows.shadow_page import ShadowPage
from kinst.runtime.tracing.guests.guest import Guest as Ran
from kinst.runtime.tracing.hits import Hit
from kinst.targets.arch.amd64 import AMD64
from kinst.targets.arch.arm64 import ARM64
from kinst.targets.image import open_image
from kinst.targets.manifest.packed import find_manifest
from kinst.targets.probe import parse_probe_name
from tests.runtime.machine import riscv_words as rv
from tests.writers.elf import EM_AARCH64, EM_RISCV, EM_X86_64, Part, Symbol, elf64

F, G, THUNK, COPIED = 0x100, 0x140, 0x180, 0x1C0


@dataclass(frozen=True)
class Guest:
    """Calls f four times, writes over it after the third call, reads it again and switches the machine off."""

    machine: int
    code: int  # address
    text: bytes
    tables: tuple[tuple[str, bytes], ...]
    functions: dict[str, tuple[int, int]]  # offset and size
    registers: dict[str, int]  # at the end
    counts: dict[str, int]  # by probe

    def write(self, folder: Path) -> Path:
        parts = [Part(".text", self.code, self.text, 7)]
        parts += [Part(name, table_at(self.code, row), data, 4) for row, (name, data) in enumerate(self.tables)]
        symbols = [Symbol(name, self.code + start, size) for name, (start, size) in self.functions.items()]
        path = folder / "guest.elf"
        path.write_bytes(elf64(self.machine, self.code, parts, symbols))
        return path


def table_at(code: int, row: int) -> int:
    return code + 0x1000 * (row + 1)


def relative(code: int, row: int, field: int, target: int) -> bytes:
    """An s32 at offset `field` of table number `row` that leads to an offset of the code."""
    return struct.pack("<i", code + target - (table_at(code, row) + field))


def static_key(code: int) -> tuple[str, bytes]:
    return "__jump_table", relative(code, 0, 0, F) + relative(code, 0, 4, F + 8) + bytes(8)


def amd64(moved: str = "ba34120000" + "0f1f00") -> Guest:
    """f: a static key, and a jump to a return thunk that becomes a return. g: two nops that become one mov, or what
    `moved` says (eight bytes in hexadecimal digits)."""
    code = 0x200000
    key = "e902000000"
    pieces = {
        0: assemble(
            AMD64,
            f"mov $0x300000, %rsp; mov $4, %ebx; xor %ecx, %ecx; again: call {code + F:#x}; call {code + G:#x}; "
            f"cmp $2, %ebx; jne next; movabs ${word(key, 0):#x}, %rax; mov %eax, {code + F:#x}; "
            f"movb $0, {code + F + 4:#x}; movb ${0xC3:#x}, {code + F + 7:#x}; movl $0xcccccccc, {code + F + 8:#x}; "
            f"movabs ${word(moved, 0):#x}, %rax; mov %rax, {code + G:#x}; "
            f"next: dec %ebx; jne again; mov ${code + F:#x}, %eax; mov (%rax), %r8d; "
            f"mov ${code + G:#x}, %eax; mov (%rax), %r9; outb %al, $0xf4",
            code,
        ),
        F: bytes.fromhex("0f1f440000ffc1") + assemble(AMD64, f"jmp {code + THUNK:#x}", code + F + 7),
        G: bytes.fromhex("0f1f000f1f440000c3"),
        THUNK: b"\xc3",
        COPIED: bytes.fromhex(moved),
    }
    alternative = relative(code, 1, 0, G) + relative(code, 1, 4, COPIED) + struct.pack("<HBB", 1, 8, 8)
    tables = (static_key(code), (".altinstructions", alternative), (".return_sites", relative(code, 2, 0, F + 7)))
    functions = {"start": (0, len(pieces[0])), "f": (F, 12), "g": (G, 9), "thunk": (THUNK, 1)}
    at_end = {"rcx": 3, "rdx": 0x1234, "r8": 0x02E9, "r9": word(moved, 0)}
    counts = {
        "kinst::f:0": 4, "kinst::f:5": 3, "kinst::f:7": 4, "fbt::f:return": 4, "fbt::f:entry": 4,
        "kinst::g:0": 4, "kinst::g:3": 3, "kinst::g:8": 4, "fbt::g:entry": 4, "fbt::thunk:entry": 3,
    }  # fmt: skip
    return Guest(EM_X86_64, code, joined(pieces), tables, functions, at_end, counts)


def arm64() -> Guest:
    """f: a static key."""
    code = 0x4020_0000
    jump = int.from_bytes(assemble(ARM64, f"b {code + F + 8:#x}", code + F), "little")
    pieces = {
        0: assemble(
            ARM64,
            f"mov x19, #4; mov x21, #0; again: bl #{code + F:#x}; cmp x19, #2; b.ne next; "
            f"movz x1, #{code + F & 0xFFFF:#x}; movk x1, #{code >> 16:#x}, lsl #16; "
            f"mov w2, #{jump & 0xFFFF:#x}; movk w2, #{jump >> 16:#x}, lsl #16; str w2, [x1]; dsb sy; isb; "
            f"next: subs x19, x19, #1; b.ne again; ldr w20, [x1]; "
            "movz w0, #8; movk w0, #0x8400, lsl #16; hvc #0",
            code,
        ),
        F: assemble(ARM64, "nop; add x21, x21, #1; ret", code + F),
    }
    functions = {"start": (0, len(pieces[0])), "f": (F, 12)}
    counts = {"kinst::f:0": 4, "kinst::f:4": 3, "kinst::f:8": 4, "fbt::f:entry": 4, "fbt::f:return": 4}
    at_end = {"x20": jump, "x21": 3}
    return Guest(EM_AARCH64, code, joined(pieces), (static_key(code),), functions, at_end, counts)


def riscv64() -> Guest:
    """f: a static key."""
    code = 0x8000_0000
    words = [rv.addi(rv.S2, 0, 4), rv.addi(rv.S3, 0, 0)]
    again = len(words)
    words += [rv.jal(rv.RA, F - 4 * again), rv.addi(rv.T0, 0, 2)]
    patch = [*rv.la(rv.T1, code + F), *rv.li(rv.T2, rv.jal(0, 8)), rv.store(rv.T2, rv.T1, size=2), rv.FENCE_I]
    words += [rv.bne(rv.S2, rv.T0, 4 * (len(patch) + 1)), *patch, rv.addi(rv.S2, rv.S2, -1)]
    words += [rv.bne(rv.S2, 0, 4 * (again - len(words))), *rv.la(rv.T1, code + F), rv.load(rv.S4, rv.T1, size=2)]
    words += [*rv.la(rv.T1, 0x10_0000), *rv.li(rv.T2, 0x5555), rv.store(rv.T2, rv.T1, size=2), rv.jal(0, 0)]
    pieces = {0: rv.code(*words), F: rv.code(rv.NOP, rv.addi(rv.S3, rv.S3, 1), 0x8067)}
    functions = {"start": (0, len(pieces[0])), "f": (F, 12)}
    counts = {"kinst::f:0": 4, "kinst::f:4": 3, "kinst::f:8": 4, "fbt::f:entry": 4, "fbt::f:return": 4}
    at_end = {"x20": rv.jal(0, 8), "x19": 3}
    return Guest(EM_RISCV, code, joined(pieces), (static_key(code),), functions, at_end, counts)


def word(digits: str, start: int) -> int:
    return int.from_bytes(bytes.fromhex(digits)[start : start + 8], "little")


def joined(pieces: dict[int, bytes]) -> bytes:
    text = bytearray(max(pieces) + 0x40)
    for start, piece in pieces.items():
        text[start : start + len(piece)] = piece
    return bytes(text)


GUESTS = [pytest.param(make, id=make.__name__) for make in (amd64, arm64, riscv64)]
each_guest = pytest.mark.parametrize("make", GUESTS)


def run(path: Path, descriptions: tuple[str, ...]) -> tuple[Ran, Counter[str]]:
    counts: Counter[str] = Counter()

    def count(hit: Hit) -> None:
        counts[f"{hit.probe.provider}::{hit.probe.function}:{hit.probe.name}"] += 1

    with api.open_image(path) as image:
        trace = image.trace(actions=dict.fromkeys(descriptions, count), machine=Machine(clock="icount"))
    assert trace.run(seconds=1) is End.POWER_OFF
    return trace.guest, counts


@each_guest
def test_probes_fire_at_what_the_guest_wrote_and_it_reads_its_own_bytes(make: type[Guest], tmp_path: Path) -> None:
    guest = make()  # type: ignore[call-arg]
    path = guest.write(tmp_path)
    plain, _ = run(path, ())
    ran, counts = run(path, tuple(guest.counts))
    assert counts == guest.counts
    for name, value in guest.registers.items():
        assert ran.system.cpus[0].registers.get(name) == plain.system.cpus[0].registers.get(name) == value
    assert ran.system.clock.now() == plain.system.clock.now()
    for one in guest.counts:  # alone, a page may have no other site
        assert run(path, (one,))[1] == {one: guest.counts[one]}


@each_guest
def test_the_file_keeps_the_bytes_that_the_guest_will_write_over(make: type[Guest], tmp_path: Path) -> None:
    guest = make()  # type: ignore[call-arg]
    path, patched, back = guest.write(tmp_path), tmp_path / "patched.elf", tmp_path / "back.elf"
    _, plan = plan_probes(open_source(Source(path)), [parse_probe_name(name) for name in guest.counts])
    write_image(plan, patched)
    manifest = find_manifest(open_image(patched))
    assert manifest is not None
    deferred = manifest.sites["address"][manifest.is_deferred].tolist()
    assert guest.code + F in deferred
    for address in deferred:
        assert open_image(patched).read(address, 4) == open_image(path).read(address, 4)
    diff = compare(open_image(path), open_image(patched))
    assert diff.is_explained
    assert f"{len(deferred)} deferred site" in "\n".join(text_lines(diff))
    restore(open_image(patched), manifest, back)
    assert back.read_bytes() == path.read_bytes()
    assert run(patched, tuple(guest.counts))[1] == guest.counts


def told(path: Path, *descriptions: str) -> list[str]:
    program = ",".join(descriptions) + " { @[probefunc] = count(); }"
    result = CliRunner().invoke(run_command, [str(path), "--clock", "icount", "-n", program], prog_name="kinst-run")
    assert result.stdout.split() == ["g", "3"]  # before the guest wrote there
    return [line for line in result.stderr.splitlines() if "wrote over" in line]


@pytest.mark.parametrize(
    ("moved", "why"),
    [
        ("fb" + "90" * 7, "1 of 1 refused: 1 opens an interrupt shadow that must cover the next instruction"),
        (
            "4a8d0d00000080" + "90",
            "1 of 1 refused: 1 its operand is out of reach of the trampoline",
        ),  # lea, and REX.X has no SIB
    ],
)
def test_what_the_guest_wrote_and_cannot_be_probed_is_told(moved: str, why: str, tmp_path: Path) -> None:
    path = amd64(moved).write(tmp_path)
    assert told(path, "kinst::g:0") == [f"kinst-run: of the sites that the guest wrote over, {why}"]
    guest, counts = run(path, ("kinst::g:0", "kinst::f:0"))
    assert counts == {"kinst::g:0": 3, "kinst::f:0": 4}
    assert guest.system.cpus[0].registers.get("r9") == word(moved, 0)


def test_an_instruction_that_is_gone_is_told(tmp_path: Path) -> None:
    """g:3 is inside of what the guest wrote; what can be probed is not told of."""
    path = amd64().write(tmp_path)
    assert told(path, "kinst::g:3") == [
        "kinst-run: of the sites that the guest wrote over, 1 of 1 refused: 1 no instruction begins here"
    ]
    code = run(path, ("kinst::f:0", "kinst::g:0"))[0].code
    assert code is not None
    assert not code.passed_over()


def test_functions_with_the_bytes_of_the_last_look_are_not_decoded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guest writes over f, and what is there over g. After every look, what is known of the page is what decoding
    all of it gives."""
    guest, looks, decoded = amd64("0f1f000f1f440000"), Counter[str](), DeferredSites._decode

    def state(sites: DeferredSites, rows: NDArray[np.intp]) -> list[object]:
        columns = (sites._now, sites._target, sites._is_armed, sites._reason)
        return [column[rows].tolist() for column in columns]

    def decode(sites: DeferredSites, page: ShadowPage, *, is_ours: bool) -> None:
        had, seen = dict(page.noted), {one: bytes(text) for one, text in texts(sites, page).items()}
        decoded(sites, page, is_ours=is_ours)
        looks["looks"] += 1
        looks["functions kept"] += sum(had.get(one) == text for one, text in seen.items())
        looks["functions changed"] += sum(one in had and had[one] != text for one, text in seen.items())
        found = state(sites, page.rows)
        page.noted.clear()
        decoded(sites, page, is_ours=is_ours)
        assert state(sites, page.rows) == found

    monkeypatch.setattr(DeferredSites, "_decode", decode)
    assert run(guest.write(tmp_path), tuple(guest.counts))[1] == guest.counts | {"kinst::g:3": 4}
    assert looks == {"looks": 2, "functions changed": 1, "functions kept": 1}


def texts(sites: DeferredSites, page: ShadowPage) -> dict[int, NDArray[np.uint8]]:
    (text,) = sites._functions(page.rows, page.distance)
    return {
        number: text.code[start:end]
        for number, (start, end) in zip(text.functions.tolist(), text.ranges.tolist(), strict=True)
    }
