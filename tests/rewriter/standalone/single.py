"""One group of instructions, one by one -> their trampoline, and the jump to it: what `building` makes of thousands."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from kinst.rewriter.standalone import jumping
from kinst.rewriter.standalone.code import trampoline
from kinst.rewriter.standalone.code.groups import Groups
from kinst.rewriter.standalone.code.laying import Laid, lay
from kinst.rewriter.standalone.code.material import Material
from kinst.rewriter.standalone.code.parts import CELL, FIRST, RING, SITE, Numbers
from kinst.rewriter.standalone.code.pieces import pieces
from kinst.rewriter.standalone.code.templates import Templates
from kinst.rewriter.standalone.code.trampoline import CodeGenerator, ImmovableError, Rows, Tasks, Word
from kinst.targets.instruction import KEPT, Flow
from kinst.targets.standalone import RING_HEAD

NOTHING_MORE: Final[Mapping[str, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Count:
    """Add one to the word at a link address."""

    cell: int


@dataclass(frozen=True, slots=True)
class Record:
    """Append a record to the ring at a link address, of the site with that number."""

    ring: int
    mask: int
    stride: int
    site: int
    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Covered:
    """A row of `Rows`, and its task; None: it is no site."""

    address: int
    code: bytes
    target: int
    kind: int
    flow: Flow
    dead: int
    has_stack: bool
    task: Count | Record | None
    dead_after: int = 0


def covered_in(material: Material, one: Groups, tasks: Iterable[Count | Record | None]) -> list[Covered]:
    """The instructions of a group of a program, with a task for each."""
    numbers, rows = material.rows(one)
    return [
        Covered(
            int(rows.address[row]),
            rows.code[row].tobytes()[: int(rows.size[row])],
            int(rows.target[row]),
            int(rows.kind[row]),
            Flow(int(rows.flow[row])),
            int(rows.dead[row]),
            bool(rows.has_stack[row]),
            task,
            int(rows.dead_after[row]),
        )
        for row, task in zip(range(len(numbers)), tasks, strict=False)
    ]


def rows_of(group: Sequence[Covered]) -> Rows:
    code = np.frombuffer(b"".join(one.code.ljust(KEPT, b"\0") for one in group), np.uint8).reshape(-1, KEPT)
    return Rows(
        np.array([one.address for one in group], np.uint64),
        np.array([len(one.code) for one in group], np.int64),
        np.array([one.target for one in group], np.uint64),
        np.array([one.kind for one in group], np.uint8),
        np.array([one.flow for one in group], np.uint8),
        code,
        np.array([one.dead for one in group], np.uint32),
        np.array([one.dead_after for one in group], np.uint32),
        np.array([one.has_stack for one in group], np.bool_),
        np.zeros(len(group), np.int64),
    )


def trampoline_of(
    generator: CodeGenerator, group: Sequence[Covered], address: int, more: Mapping[str, int] = NOTHING_MORE
) -> bytes:
    """`more`: values of further fixups. Raises ImmovableError: there is none."""
    templates, tasks, sites = Templates(generator), [one.task for one in group], np.arange(len(group))
    sites[[task is None for task in tasks]] = -1
    alike = [_alike(task) for task in tasks]
    several = tuple(dict.fromkeys(alike))
    number = np.array([several.index(task) for task in alike])
    table = np.array([_values(task) for task in tasks], np.uint64).T
    values = dict(zip((CELL, RING, FIRST, SITE), table, strict=True))
    values |= {name: np.full(len(group), value, np.uint64) for name, value in more.items()}
    found, why = pieces(templates, rows_of(group), Tasks(several, number, values), sites)
    _raise(templates, why)
    return _code(templates, lay(templates, found, 1, lambda _sizes: np.array([address], np.uint64)))


def _alike(task: Count | Record | None) -> trampoline.Task:
    return trampoline.Record(task.mask, task.stride, task.words) if isinstance(task, Record) else trampoline.Count()


def _values(task: Count | Record | None) -> tuple[int, int, int, int]:
    """What CELL, RING, FIRST and SITE are."""
    match task:
        case Count(cell):
            return cell, 0, 0, 0
        case Record(ring=ring, site=site):
            return 0, ring, ring + RING_HEAD, site
        case None:
            return 0, 0, 0, 0


def jump_to(generator: CodeGenerator, address: int, size: int, target: int, dead: int = 0) -> bytes:
    """Raises ImmovableError: there is none."""
    templates = Templates(generator)
    at, goal = np.array([address], np.uint64), np.array([target], np.uint64)
    laid = jumping.lay_jumps(templates, at, np.array([size]), goal, np.array([dead], np.uint32))
    code = _code(templates, laid)
    return code + generator.filler(size - len(code))


def _code(templates: Templates, laid: Laid) -> bytes:
    _raise(templates, laid.refused)
    return laid.code.tobytes()


def _raise(templates: Templates, why: Numbers) -> None:
    if why.any():
        raise ImmovableError([*templates.reasons][int(why[0])])
