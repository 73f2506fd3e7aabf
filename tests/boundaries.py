"""An image and its sites -> those of them where objdump, the second opinion, sees no instruction begin."""

import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.program import Program
from kinst.targets.elf.header import FileKind
from kinst.targets.functions.evidence import Evidence
from kinst.targets.image import CodeRegion, Image

# The objdump of the machine; Debian's cross binutils, or the native one.
OBJDUMP = {
    "amd64": "x86_64-linux-gnu-objdump",
    "arm64": "aarch64-linux-gnu-objdump",
    "riscv64": "riscv64-linux-gnu-objdump",
}
# What objdump writes for bytes that are no instruction. An instruction of riscv64 that it does not know it writes as
# .2byte or .4byte: how long it is, its lowest bits tell.
_NO_CODE = (b"(bad)", b".byte", b".word", b".short", b".long", b".inst", b"udf", b".8byte")
_WAIT = b"\x9b"
# (mask, bits) of instructions of arm64 that Linux 7.2 has and objdump 2.40 does not know: SME2's ldr and
# str of ZT0, gcsstr and gcssttr, and FEAT_LSUI's cast, ldtadd, ldtclr, ldtset and swpt. 2.47.50 reads them so.
_NEWER = (
    *((0xFFFFFC1F, 0xE11F8000), (0xFFFFFC1F, 0xE13F8000), (0xFFFFEC00, 0xD91F0C00), (0xFFA07C00, 0xC9807C00)),
    *((0xBF20FC00, 0x19200400), (0xBF20FC00, 0x19201400), (0xBF20FC00, 0x19203400), (0xBF20FC00, 0x19208400)),
)
_IN_STEP = 64  # bytes after which a sweep of amd64 code has found the boundaries, wherever it began


@dataclass(frozen=True, slots=True)
class Stray:
    """A site where objdump sees no instruction begin, and why that is right all the same; empty: it is not."""

    address: int
    code: str
    reason: str

    def __str__(self) -> str:
        """Address and bytes."""
        return f"{self.address:#x} ({self.code})"


def strays(program: Program, path: Path, sites: NDArray[np.void]) -> list[Stray]:
    """The sites that objdump does not confirm."""
    starts = instruction_starts(program.image, path)
    confirmed = np.isin(sites["address"], starts)
    return [_stray(program, starts, site) for site in sites[~confirmed]]


def _stray(program: Program, starts: NDArray[np.uint64], site: np.void) -> Stray:
    address, code = int(site["address"]), bytes(site["original"])[: int(site["size"])]
    before = program.image.read(address - 1, 1)[:1]
    if program.image.facts.name != "amd64":
        return Stray(address, code.hex(" "), newer_than_objdump(code) if program.image.facts.name == "arm64" else "")
    if code[0] in range(0xD8, 0xE0) and before == _WAIT:
        return Stray(address, code.hex(" "), "objdump shows fwait and what is behind it as one; the processor runs two")
    if _is_out_of_step(program, starts, address):
        return Stray(address, code.hex(" "), "objdump reads padding or a table before a function as code")
    return Stray(address, code.hex(" "), "")


def newer_than_objdump(code: bytes) -> str:
    """Why a word of arm64 may be an instruction that objdump does not know; empty: it may not."""
    word = int.from_bytes(code, "little")
    known = any(word & mask == bits for mask, bits in _NEWER)
    return "an instruction that is newer than this objdump" if known else ""


def _is_out_of_step(program: Program, starts: NDArray[np.uint64], address: int) -> bool:
    """Whether objdump misses even the start of the function, since it began to read before it: in zeros, or in
    anything else if a call, a pointer, a symbol or an FDE names the function."""
    functions = program.functions
    row = functions.row_at(address)
    if row is None:
        return False
    adjacent = functions.address[:row] + functions.size[:row] == functions.address[1 : row + 1]
    while row and adjacent[row - 1] and functions.evidence[row] > Evidence.POINTER:
        row -= 1  # what follows at once is where that one says
    start = int(functions.address[row])
    place = int(np.searchsorted(starts, np.uint64(start), "right")) - 1
    before = program.image.read(int(starts[place]), start - int(starts[place]))
    known = functions.evidence[row] <= Evidence.POINTER or not any(before)
    return len(before) > 0 and known and address - start < _IN_STEP


def instruction_starts(image: Image, path: Path) -> NDArray[np.uint64]:
    """Where objdump's instructions begin in the executable sections of a file, ascending."""
    # Go marks its .plt as data on riscv64: with -d no instruction is seen there.
    if image.kind is FileKind.REL:  # each section begins at 0 there; ours are where the file has them
        return np.unique(np.concatenate([_of_section(image, path, region) for region in image.code_regions]))
    parts = [_disassembled(image, path, "-d")]
    if image.facts.name == "riscv64" and image.section(".plt") is not None:
        parts.append(_disassembled(image, path, "-D", "-j", ".plt"))
    return np.unique(np.concatenate(parts))


def _of_section(image: Image, path: Path, region: CodeRegion) -> NDArray[np.uint64]:
    name = next(one.name for one in image.sections if one.offset == region.offset and one.size == region.size)
    return _disassembled(image, path, "-d", "-j", name) + np.uint64(region.address)


def _disassembled(image: Image, path: Path, *options: str) -> NDArray[np.uint64]:
    tool = OBJDUMP[image.facts.name]
    if shutil.which(tool) is None:
        raise FileNotFoundError(f"{tool} is not installed: binutils are the judge here")
    command = [tool, *options, "-z", "-w", "--no-show-raw-insn", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        found = np.fromiter(_addresses(process.stdout), np.uint64)
    assert process.returncode == 0, f"{tool} failed"
    return found


def _addresses(lines: Iterable[bytes]) -> Iterator[int]:
    for line in lines:
        address, colon, text = line.partition(b":\t")
        if colon and not text.startswith(_NO_CODE):
            yield int(address, 16)
