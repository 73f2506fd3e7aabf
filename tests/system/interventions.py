"""A seed and a sample kernel -> interventions at some of its instructions, and the same image with its code changed by
hand: what clauses do to the CPU must be what an instruction does to it. Encodings are those of the machines' manuals.
"""

import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kinst.rewriter.rewriting import listed_probes
from kinst.runtime.api import ImageFile, open_image
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.arch.registry import arch_by_name
from kinst.targets.image import Image

WRITTEN = 4  # interventions of a program


@dataclass(frozen=True, slots=True)
class Place:
    """A site of kinst, and where other instructions of its function begin."""

    function: str
    offset: int
    address: int
    size: int
    others: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Changed:
    """Clauses that intervene, the image that does the same without them, and what its code was before: link address and
    bytes."""

    program: str
    image: Path
    before: tuple[tuple[int, bytes], ...]


Drawn = tuple[str, bytes] | None  # statements, and the one instruction that does the same; None: none of this size


def changed(machine: str, path: Path, functions: Sequence[str], draw: random.Random, folder: Path) -> Changed:
    """Interventions in some of these functions, one each."""
    arch, clauses, codes = arch_by_name(machine), list[str](), list[tuple[Place, bytes]]()
    with open_image(path) as file:
        places = _places(file, [f"kinst::{name}:" for name in functions])
    draw.shuffle(places)
    done = set[str]()
    for place in places:
        found = None if place.function in done else draw.choice(_FORMS[machine])(arch, place, draw)
        if found is None:
            continue
        done.add(place.function)
        clauses.append(f"kinst::{place.function}:{place.offset} {{ {found[0]} }}")
        assert len(found[1]) == place.size
        codes.append((place, found[1]))
        if len(clauses) == WRITTEN:
            break
    return _written("\n".join(clauses), path, codes, folder)


def returning(machine: str, path: Path, functions: Sequence[str], folder: Path) -> Changed:
    """An image in which these functions only return."""
    returns: dict[str, tuple[bytes, ...]] = {"amd64": (b"\xc3",), "arm64": (bytes.fromhex("c0035fd6"),)}
    returns["riscv64"] = (bytes.fromhex("8280"), bytes.fromhex("67800000"))
    with open_image(path) as file:
        found = _places(file, [f"fbt::{name}:entry" for name in functions])
    # An instruction that is shorter leaves the rest, which nobody reaches.
    codes = [(place, next(code for code in reversed(returns[machine]) if len(code) <= place.size)) for place in found]
    return _written("", path, codes, folder)


def _written(program: str, path: Path, codes: Sequence[tuple[Place, bytes]], folder: Path) -> Changed:
    content, before = bytearray(path.read_bytes()), list[tuple[int, bytes]]()
    with open_image(path) as file:
        image = file.opened.image
    for place, code in codes:
        at = _offset(image, place.address)
        before.append((place.address, bytes(content[at : at + len(code)])))
        content[at : at + len(code)] = code
    target = folder / path.name  # a kernel is told its name
    target.write_bytes(content)
    return Changed(program, target, tuple(before))


def _offset(image: Image, address: int) -> int:
    return next(
        address - one.address + one.offset
        for one in image.segments
        if one.address <= address < one.address + one.file_size
    )


def _places(file: ImageFile, descriptions: Sequence[str]) -> list[Place]:
    manifest, _, _ = listed_probes(file.opened, file.resolve(*descriptions))
    found: dict[str, list[tuple[int, int, int]]] = {}
    for site, probe in manifest.enablings.tolist():
        function = manifest.function_name(int(manifest.probes["function"][probe]))
        address, size = (int(manifest.sites[site][name]) for name in ("address", "size"))
        found.setdefault(function, []).append((int(manifest.probes["offset"][probe]), address, size))
    return [
        Place(name, offset, address, size, tuple(other for _, other, _ in sites if other != address))
        for name, sites in found.items()
        for offset, address, size in sites
    ]


# -- what all machines have -------------------------------------------------------------------------------------------


def _skip(arch: ArchFacts, place: Place, _draw: random.Random) -> Drawn:
    nop = arch.sized_nops.get(place.size)
    return None if nop is None else ("skip();", nop)


def _amd64_nop(_arch: ArchFacts, place: Place, _draw: random.Random) -> Drawn:
    """As many prefixes as it takes (SDM volume 2, NOP)."""
    return "skip();", b"\x66" * (place.size - 1) + b"\x90"


# -- amd64: SDM volume 2 ----------------------------------------------------------------------------------------------


def _amd64_move(_arch: ArchFacts, place: Place, draw: random.Random) -> Drawn:
    """mov r32, imm32 and mov r64, imm32, of which the first clears the upper half."""
    names = ("RAX", "RCX", "RDX", "RBX", "RSP", "RBP", "RSI", "RDI", *(f"R{number}" for number in range(8, 16)))
    number, value = draw.choice([one for one in range(16) if one != 4]), draw.choice((0, 1, 5, 77, 4096, 1 << 30))
    low, is_high = number & 7, number > 7
    short = bytes((0x41,)) * is_high + bytes((0xB8 + low,)) + struct.pack("<I", value)
    long = bytes((0x48 | is_high, 0xC7, 0xC0 + low)) + struct.pack("<I", value)
    code = next((one for one in (short, long) if len(one) == place.size), None)
    return None if code is None else (f"regs[R_{names[number]}] = {value}; skip();", code)


def _amd64_flags(_arch: ArchFacts, place: Place, draw: random.Random) -> Drawn:
    prefixes = b"\x66" * (place.size - 1)
    texts = (("regs[R_RFL] |= 1;", b"\xf9"), ("regs[R_RFL] ^= 1;", b"\xf5"), ("regs[R_RFL] &= ~1;", b"\xf8"))
    text, code = draw.choice(texts)
    return f"{text} skip();", prefixes + code


def _amd64_jump(_arch: ArchFacts, place: Place, draw: random.Random) -> Drawn:
    distance = (target := draw.choice(place.others)) - place.address - place.size
    if place.size == 5:
        return f"regs[R_RIP] = {target}ULL;", b"\xe9" + struct.pack("<i", distance)
    is_short = place.size == 2 and -128 <= distance < 128
    return (f"regs[R_RIP] = {target}ULL;", b"\xeb" + struct.pack("<b", distance)) if is_short else None


def _amd64_stack(_arch: ArchFacts, place: Place, _draw: random.Random) -> Drawn:
    """lea rsp, [rsp - 64]"""
    return ("regs[R_RSP] -= 64; skip();", bytes.fromhex("488d6424c0")) if place.size == 5 else None


# -- arm64: Arm ARM, C6 -----------------------------------------------------------------------------------------------


def _arm64_move(_arch: ArchFacts, _place: Place, draw: random.Random) -> Drawn:
    """movz"""
    number, value = draw.randrange(31), draw.choice((0, 1, 5, 77, 4096, 65535))
    name = "R_LR" if number == 30 else f"R_X{number}"
    return f"regs[{name}] = {value}; skip();", struct.pack("<I", 0xD280_0000 | value << 5 | number)


def _arm64_flags(_arch: ArchFacts, _place: Place, draw: random.Random) -> Drawn:
    """msr nzcv: of what is written, only these bits count."""
    number = draw.randrange(30)
    return f"regs[33] = regs[R_X{number}]; skip();", struct.pack("<I", 0xD51B_4200 | number)


def _arm64_jump(_arch: ArchFacts, place: Place, draw: random.Random) -> Drawn:
    target = draw.choice(place.others)
    return f"regs[R_PC] = {target}ULL;", struct.pack("<I", 0x1400_0000 | (target - place.address) // 4 & 0x3FF_FFFF)


def _arm64_stack(_arch: ArchFacts, _place: Place, _draw: random.Random) -> Drawn:
    """sub sp, sp, #64"""
    return "regs[R_SP] -= 64; skip();", struct.pack("<I", 0xD101_03FF)


# -- riscv64: Unprivileged Architecture, 2.4 to 2.6, 27 ---------------------------------------------------------------


def _riscv64_move(arch: ArchFacts, place: Place, draw: random.Random) -> Drawn:
    """addi rd, x0, imm and c.li"""
    number, value = draw.randrange(1, 32), draw.choice((0, 1, 5, 17, 31))
    code = struct.pack("<I", value << 20 | number << 7 | 0x13)
    if place.size == 2:
        code = struct.pack("<H", 0x4001 | number << 7 | (value & 31) << 2)
    return f"regs[R_{arch.registers[number].upper()}] = {value}; skip();", code


def _riscv64_jump(_arch: ArchFacts, place: Place, draw: random.Random) -> Drawn:
    """jal x0"""
    target = draw.choice(place.others)
    bits = target - place.address & 0x1F_FFFF
    shuffled = bits >> 20 << 31 | (bits >> 1 & 0x3FF) << 21 | (bits >> 11 & 1) << 20 | (bits >> 12 & 0xFF) << 12
    return None if place.size == 2 else (f"regs[R_PC] = {target}ULL;", struct.pack("<I", shuffled | 0x6F))


def _riscv64_stack(_arch: ArchFacts, place: Place, _draw: random.Random) -> Drawn:
    """addi sp, sp, -64; c.addi16sp"""
    code = struct.pack("<I", 0xFC01_0113) if place.size == 4 else struct.pack("<H", 0x7139)
    return "regs[R_SP] -= 64; skip();", code


_Form = Callable[[ArchFacts, Place, random.Random], Drawn]
_FORMS: dict[str, tuple[_Form, ...]] = {
    "amd64": (_amd64_nop, _amd64_move, _amd64_move, _amd64_flags, _amd64_jump, _amd64_stack),
    "arm64": (_skip, _arm64_move, _arm64_flags, _arm64_jump, _arm64_stack),
    "riscv64": (_skip, _riscv64_move, _riscv64_jump, _riscv64_stack),
}
