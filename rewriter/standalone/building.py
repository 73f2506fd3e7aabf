"""Groups of instructions and their tasks -> the code of trampolines, and the jumps to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.program import Program
from kinst.rewriter.progress import Progress
from kinst.rewriter.standalone.groups import Group
from kinst.rewriter.standalone.rooms import Room
from kinst.rewriter.standalone.trampoline import Count, Covered, ImmovableError, Maker, Record
from kinst.targets.instruction import Flow, Instructions
from kinst.targets.patch import Patch

NO_ROOM: Final = "no room is left for its trampoline"


@dataclass(slots=True)
class Built:
    """The trampolines of each room, one behind the other; the jumps, by address; where the trampoline of each row is in
    which there is a task; and why some rows have none."""

    code: list[tuple[int, bytearray]] = field(default_factory=list)
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
        behind = self._dead_at(row + 1, address + len(code))
        has_stack = not self.has_no_stack[row]
        return Covered(address, code, target, kind, flow, int(self.dead[row]), has_stack, task, behind)

    def _dead_at(self, row: int, address: int) -> int:
        """What is dead before an instruction, which is this row if it is known."""
        is_known = row < len(self.found) and int(self.found.address[row]) == address
        return int(self.dead[row]) if is_known else 0


def build(
    maker: Maker,
    material: Material,
    groups: Sequence[Group],
    tasks: Mapping[int, Count | Record],
    rooms: Sequence[Room],
    progress: Progress,
) -> Built:
    """Trampolines in some rooms.

    Args:
        maker: the machine's.
        material: the program.
        groups: what jumps shall cover.
        tasks: of the rows that are sites.
        rooms: where trampolines may be, ascending.
        progress: told of groups.
    """
    builder = _Builder(maker, material, tasks, rooms)
    with progress("trampolines", len(groups)) as done:
        for group in groups:
            builder.add(group)
            done(1)
    builder.built.jumps.sort(key=lambda one: one.address)
    return builder.built


class _Builder:
    def __init__(
        self, maker: Maker, material: Material, tasks: Mapping[int, Count | Record], rooms: Sequence[Room]
    ) -> None:
        self.built = Built([(start, bytearray()) for start, _ in rooms])
        self._maker, self._material, self._tasks, self._rooms = maker, material, tasks, rooms
        self._room = 0

    def add(self, group: Group) -> None:
        for one in dict.fromkeys((group, group.shortened())):  # the rest may be what cannot be moved
            rows = [row for row in range(one.first, one.first + one.count) if row in self._tasks]
            try:
                at = self._added(one)
            except ImmovableError as error:
                self.built.refused |= dict.fromkeys(rows, str(error))
                continue
            for row in rows:
                self.built.trampoline[row] = at
                self.built.refused.pop(row, None)
            return

    def _added(self, group: Group) -> int:
        """The address of a group's trampoline."""
        rows = range(group.first, group.first + group.count)
        covered = [self._material.covered(row, self._tasks.get(row)) for row in rows]
        for room in range(self._room, len(self._rooms)):
            start, code = self.built.code[room]
            at = start + len(code)
            made, jumps = self._maker.trampoline(covered, at), _jumps(self._maker, self._material, group, at)
            if at + len(made) <= self._rooms[room][1]:
                code += made
                self.built.jumps += jumps
                return at
            self._room = room + 1 if room + 1 < len(self._rooms) else room
        raise ImmovableError(NO_ROOM)


def _jumps(maker: Maker, material: Material, group: Group, target: int) -> list[Patch]:
    image, address = material.program.image, int(material.found.address[group.first])
    places = [(address, group.size, target)]
    if group.relay:
        size = image.facts.jump.size
        places = [(address, group.size, group.relay), (group.relay, size, target)]
    dead = int(material.dead[group.first])
    return [Patch(at, image.read(at, size), maker.jump(at, size, goal, dead), "") for at, size, goal in places]
