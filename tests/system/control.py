"""The steps of a trace, decoded by capstone: what jumped, what called, what returned, and what an interrupt did."""

import re
from dataclasses import dataclass
from enum import Enum
from functools import cache

import capstone
import numpy as np
from numpy.typing import NDArray

from kinst.targets.image import Image
from tests.system.cases import Case
from tests.system.plain import Plain, plain_run

_MODES = {
    "amd64": (capstone.CS_ARCH_X86, capstone.CS_MODE_64),
    "arm64": (capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM),
    "riscv64": (capstone.CS_ARCH_RISCV, capstone.CS_MODE_RISCV64 | capstone.CS_MODE_RISCVC),
}


class Way(Enum):
    """How an instruction leads elsewhere; `RETURN` and `JUMP` always do."""

    RETURN = 0
    CALL = 1
    JUMP = 2
    MAYBE = 3  # a conditional or computed jump
    RESUME = 4  # return from an exception; the next iteration of a repeated instruction
    NONE = 5  # only by an exception or interrupt


# "mnemonic operands" as capstone spells them; the first that matches.
_WAYS = {
    "amd64": (
        (Way.RETURN, r"ret"),
        (Way.CALL, r"call"),
        (Way.JUMP, r"jmp 0x"),
        (Way.MAYBE, r"j|loop"),
        (Way.RESUME, r"iret|rep"),
    ),
    "arm64": (
        (Way.RETURN, r"ret"),
        (Way.CALL, r"blr? |blra"),
        (Way.JUMP, r"b #"),
        (Way.MAYBE, r"b\.|cbn?z|tbn?z|br"),
        (Way.RESUME, r"eret"),
    ),
    "riscv64": (
        (Way.RETURN, r"ret|(c\.)?jr ra"),
        (Way.CALL, r"(c\.)?jalr?\b"),
        (Way.JUMP, r"(c\.)?j "),
        (Way.MAYBE, r"(c\.)?jr |b(eq|ne|lt|ge|gt|le)|c\.b(eq|ne)z"),
        (Way.RESUME, r"mret|sret"),
    ),
}


@dataclass(frozen=True)
class Steps:
    """Steps that did not go to the instruction behind, one row each, at link addresses."""

    before: NDArray[np.uint64]
    after: NDArray[np.uint64]
    count: NDArray[np.int64]
    ways: NDArray[np.object_]  # of the instructions at `before`
    texts: NDArray[np.object_]
    vectors: NDArray[np.uint64]  # where exceptions and interrupts go

    @property
    def is_interrupted(self) -> NDArray[np.bool_]:
        """An interrupt was taken before the instruction where this one led."""
        return np.isin(self.after, self.vectors)


@cache
def steps(case: Case) -> Steps:
    """The steps of the plain run that start in the image's code, copies of it included."""
    plain = plain_run(case)
    pairs, count = _at_link_addresses(plain)
    image = plain.run.guest.loaded.image
    known = {address: decoded(image, address) for address in np.unique(pairs[:, 0]).tolist()}
    ways = np.array([known[address][0] for address in pairs[:, 0].tolist()], object)
    texts = np.array([known[address][1] for address in pairs[:, 0].tolist()], object)
    return Steps(pairs[:, 0], pairs[:, 1], count, ways, texts, np.unique(pairs[ways == Way.NONE, 1]))


def _at_link_addresses(plain: Plain) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    pairs, count = plain.trace.steps()
    found, counts = [], []
    for distance in plain.distances:
        moved = pairs - np.uint64(distance % 2**64)
        for region in plain.run.guest.loaded.image.code_regions:
            inside = moved[:, 0] - np.uint64(region.address) < np.uint64(region.size)
            found.append(moved[inside])
            counts.append(count[inside])
    return np.concatenate(found), np.concatenate(counts)


def decoded(image: Image, address: int) -> tuple[Way, str]:
    """How the instruction at a link address leads elsewhere, and its text."""
    decoder = _decoder(image.facts.name)
    region = next(region for region in image.code_regions if region.address <= address < region.address + region.size)
    content = image.read(address, min(16, region.address + region.size - address))
    _, _, mnemonic, operands = next(decoder.disasm_lite(content, address, 1), (0, 0, "?", ""))
    text = f"{mnemonic} {operands}"
    return next((way for way, pattern in _WAYS[image.facts.name] if re.match(pattern, text)), Way.NONE), text


@cache
def _decoder(arch: str) -> capstone.Cs:
    return capstone.Cs(*_MODES[arch])


def way_at(case: Case, address: int) -> Way:
    """How the instruction at a link address leads elsewhere."""
    return decoded(plain_run(case).run.guest.loaded.image, address)[0]


def size_at(case: Case, address: int) -> int:
    """Bytes of the instruction at a link address."""
    image = plain_run(case).run.guest.loaded.image
    found = _decoder(image.facts.name).disasm_lite(image.read(address, 16), address, 1)
    return next(int(size) for _, size, _, _ in found)


def repetitions(case: Case, addresses: NDArray[np.uint64]) -> NDArray[np.int64]:
    """How often an instruction was executed directly after itself without having been left: amd64's `rep`."""
    seen = steps(case)
    again = (seen.before == seen.after) & (seen.ways == Way.RESUME)
    counts = dict(zip(seen.before[again].tolist(), seen.count[again].tolist(), strict=True))
    return np.array([counts.get(address, 0) for address in addresses.tolist()], np.int64)
