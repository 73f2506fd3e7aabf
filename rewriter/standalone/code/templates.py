"""Parts of trampolines -> columns. Each distinct shape is made once: a million instructions have a few thousand."""

from collections.abc import Callable, Collection, Hashable
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.standalone.code.parts import Bytes, Encoding, Fixup, Mask, Numbers, Parts
from kinst.rewriter.standalone.code.trampoline import (
    CodeGenerator,
    ImmovableError,
    Masks,
    Rows,
    Shape,
    Shapes,
    Task,
    Tasks,
)
from kinst.targets.values import dataclass

NOTHING: Final = 0  # the template without parts
OWN: Final = 1  # the template of an instruction that runs unchanged
NO_ENCODING: Final = -1  # of a part that is plain bytes
_KEY: Final = np.dtype(
    [("code", "V16"), ("dead", "<u4"), ("kind", "u1"), ("size", "u1"), ("has_stack", "?"), ("detail", "u1")]
)
# Keys of everything but displaced instructions: what is dead, and these bits.
_DEAD: Final = (1 << 32) - 1
_STACK, _COMPACT = 1 << 32, 1 << 33
_SIZE: Final = 32
_Key = TypeVar("_Key", int, bytes)
_Part = tuple[int, int, int, int, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The templates: their first part, how many parts, and the reason why one cannot be made. The parts: how many
    bytes, and where they are in `pool`; the encoding, value and operand of a fixup, and its fallback, which is a
    template. Part 0 is the instruction itself. Encodings, values and reasons are numbers."""

    first: Numbers
    count: Numbers
    refused: Numbers
    size: Numbers
    start: Numbers
    encoding: Numbers
    value: Numbers
    operand: Numbers
    fallback: Numbers
    pool: Bytes


class Templates:
    """The templates of one machine, by number. They are made when first asked for, and kept."""

    def __init__(self, generator: CodeGenerator) -> None:
        self.encodings: dict[Encoding, int] = {}  # these three are numbered in the order in which they come up
        self.values: dict[str, int] = {}
        self.reasons: dict[str, int] = {"": 0}
        self.generator = generator
        self._pool = bytearray()
        self._templates: list[tuple[int, int, int]] = [(0, 0, 0), (0, 1, 0)]
        self._parts: list[_Part] = [(0, 0, NO_ENCODING, 0, 0, NOTHING)]
        self._kept: dict[Hashable, dict[Hashable, int]] = {}
        self._columns: Columns | None = None

    def columns(self) -> Columns:
        """The columns of all templates made so far."""
        if self._columns is None:
            templates, parts = np.array(self._templates, np.int64).T.copy(), np.array(self._parts, np.int64).T.copy()
            first, count, refused = templates
            size, start, encoding, value, operand, fallback = parts
            pool = np.frombuffer(bytes(self._pool), np.uint8)
            self._columns = Columns(
                first=first,
                count=count,
                refused=refused,
                size=size,
                start=start,
                encoding=encoding,
                value=value,
                operand=operand,
                fallback=fallback,
                pool=pool,
            )
        return self._columns

    def reason(self, text: str) -> int:
        """The number of a reason."""
        return self.reasons.setdefault(text, len(self.reasons))

    def tasks(self, tasks: Tasks, sites: Numbers, rows: Rows, is_compact: Mask) -> Numbers:
        """What is done before each instruction: a site by number, or -1."""
        found, number = np.full(len(rows), NOTHING), np.where(sites < 0, -1, tasks.number[sites])
        # `needed` reduces what is dead to what the task's code depends on: otherwise every combination of dead
        # registers would be assembled anew.
        for which, task in enumerate(tasks.tasks):
            chosen = np.flatnonzero(number == which)
            keys = self.generator.needed(task, rows.dead[chosen]).astype(np.int64)
            keys |= rows.has_stack[chosen] * _STACK | is_compact[chosen] * _COMPACT
            found[chosen] = self._each(task, keys, partial(self._task, task))
        return found

    def moved(self, rows: Rows, shapes: Shapes) -> Numbers:
        """The displaced instructions."""
        found, other = np.full(len(rows), OWN), np.flatnonzero(~shapes.is_own)
        keys = np.zeros(len(other), _KEY)
        keys["code"] = np.frombuffer(shapes.code[other].tobytes(), _KEY["code"])
        columns: tuple[NDArray[Any], ...] = (shapes.dead, rows.kind, rows.size, shapes.has_stack, shapes.detail)
        for name, column in zip(("dead", "kind", "size", "has_stack", "detail"), columns, strict=True):
            keys[name] = column[other]
        each = keys.view(f"V{_KEY.itemsize}").tolist()  # np.unique would sort them: a dict is faster
        distinct = dict.fromkeys(each)
        templates = dict(zip(distinct, self._made("moved", distinct, self._moved), strict=True))
        found[other] = np.fromiter(map(templates.__getitem__, each), np.int64, len(each))
        return found

    def leaving(self, dead: Masks) -> Numbers:
        """Jumps back to the next instruction."""
        return self._each("leave", self._to_jump_by(dead), self.generator.leave)

    def jumps(self, sizes: Numbers, dead: Masks) -> Numbers:
        """Jumps to trampolines; `sizes`: the most bytes that each may have."""
        keys = sizes << _SIZE | self._to_jump_by(dead)
        return self._each("jump", keys, lambda key: self.generator.jump(key >> _SIZE, key & _DEAD))

    def _to_jump_by(self, dead: Masks) -> Numbers:
        return (dead & np.uint32(self.generator.rules.jumps_by)).astype(np.int64)

    def _task(self, task: Task, key: int) -> Parts:
        return self.generator.task(task, key & _DEAD, has_stack=bool(key & _STACK), is_compact=bool(key & _COMPACT))

    def _moved(self, key: bytes) -> Parts:
        code, dead, kind, size, has_stack, detail = np.frombuffer(key, _KEY)[0].tolist()
        return self.generator.moved(Shape(code[:size], kind, dead, has_stack, detail))

    def _each(self, what: Hashable, keys: Numbers, make: Callable[[int], Parts]) -> Numbers:
        """The template of each key."""
        distinct, number = np.unique(keys, return_inverse=True)
        found: Numbers = np.array(self._made(what, distinct.tolist(), make), np.int64)[number]
        return found

    def _made(self, what: Hashable, distinct: Collection[_Key], make: Callable[[_Key], Parts]) -> list[int]:
        known = self._kept.setdefault(what, {})
        for key in (key for key in distinct if key not in known):
            try:
                known[key] = self._added(make(key))
            except ImmovableError as error:
                # A refusal is a template, too: it is found again without another attempt.
                known[key] = self._new((0, 0, self.reason(str(error))))
        return [known[key] for key in distinct]

    def _added(self, parts: Parts) -> int:
        rows = [self._bytes(part) if isinstance(part, bytes) else self._fixup(part) for part in parts]
        first = len(self._parts)
        self._parts += rows
        return self._new((first, len(rows), 0))

    def _new(self, template: tuple[int, int, int]) -> int:
        self._columns = None
        self._templates.append(template)
        return len(self._templates) - 1

    def _bytes(self, code: bytes) -> _Part:
        start = len(self._pool)
        self._pool += code
        return len(code), start, NO_ENCODING, 0, 0, NOTHING

    def _fixup(self, fixup: Fixup) -> _Part:
        """Its bytes in the pool are placeholders: code is copied from the pool whole, then fixups are filled in."""
        _, start, *_ = self._bytes(bytes(fixup.encoding.size))
        if isinstance(fixup.fallback, str):
            fallback = self._new((0, 0, self.reason(fixup.fallback)))
        else:
            fallback = self._added(fixup.fallback)
        encoding = self.encodings.setdefault(fixup.encoding, len(self.encodings))
        value = self.values.setdefault(fixup.value, len(self.values))
        return fixup.encoding.size, start, encoding, value, fixup.operand, fallback
