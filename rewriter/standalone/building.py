"""Groups of instructions and their tasks -> the code of trampolines, and the jumps to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.program import Program
from kinst.rewriter.progress import Progress
from kinst.rewriter.standalone.groups import Group
from kinst.rewriter.standalone.trampoline import Count, Covered, ImmovableError, Maker, Record
from kinst.targets.instruction import Flow, Instructions
from kinst.targets.patch import Patch


@dataclass(slots=True)
class Built:
    """The trampolines, one behind the other; the jumps, by address; where the trampoline of each row is in which there
    is a task; and why some rows have none."""

    code: bytearray = field(default_factory=bytearray)
    jumps: list[Patch] = field(default_factory=list)
    trampoline: dict[int, int] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Material:
    """What trampolines are made of: columns for all instructions of a program."""

    program: Program
    found: Instructions
    dead: NDArray[np.uint32]
    has_no_stack: NDArray[np.bool_]

    def covered(self, row: int, task: Count | Record | None) -> Covered:
        """One instruction as a machine's maker takes it."""
        found = self.found
        address = int(found.address[row])
        code = self.program.image.read(address, int(found.size[row]))
        target, kind, flow = int(found.target[row]), int(found.kind[row]), Flow(int(found.flow[row]))
        return Covered(address, code, target, kind, flow, int(self.dead[row]), not self.has_no_stack[row], task)


def build(
    maker: Maker,
    material: Material,
    groups: Sequence[Group],
    tasks: Mapping[int, Count | Record],
    base: int,
    progress: Progress,
) -> Built:
    """Trampolines from a link address on.

    Args:
        maker: the machine's.
        material: the program.
        groups: what jumps shall cover.
        tasks: of the rows that are sites.
        base: of the first trampoline.
        progress: told of groups.
    """
    built = Built()
    with progress("trampolines", len(groups)) as done:
        for group in groups:
            _add(built, maker, material, group, tasks, base + len(built.code))
            done(1)
    built.jumps.sort(key=lambda one: one.address)
    return built


def _add(
    built: Built, maker: Maker, material: Material, group: Group, tasks: Mapping[int, Count | Record], at: int
) -> None:
    for one in dict.fromkeys((group, group.shortened())):  # the rest may be what cannot be moved
        try:
            covered = [material.covered(row, tasks.get(row)) for row in range(one.first, one.first + one.count)]
            code, jumps = maker.trampoline(covered, at), _jumps(maker, material, one, at)
        except ImmovableError as error:
            built.refused |= {row: str(error) for row in range(one.first, one.first + one.count) if row in tasks}
            continue
        built.code += code
        built.jumps += jumps
        for row in range(one.first, one.first + one.count):
            if row in tasks:
                built.trampoline[row] = at
                built.refused.pop(row, None)
        return


def _jumps(maker: Maker, material: Material, group: Group, target: int) -> list[Patch]:
    image, address = material.program.image, int(material.found.address[group.first])
    places = [(address, group.size, target)]
    if group.relay:
        size = image.facts.jump.size
        places = [(address, group.size, group.relay), (group.relay, size, target)]
    return [Patch(at, image.read(at, size), maker.jump(at, size, goal), "") for at, size, goal in places]
