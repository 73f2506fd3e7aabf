"""Drawn D programs over drawn records of an image, as if a QEMU had recorded them."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kinst.rewriter.standalone.request import Request
from kinst.runtime.live.fields import Fields
from kinst.runtime.live.keeping import Keeping
from kinst.runtime.machine.configuration import ClockKind, End
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.patched.sites import SiteTable
from kinst.runtime.tracing.host.contract import NoGuest
from kinst.runtime.tracing.host.ending import Ending, Outcome, bare_ending
from kinst.runtime.tracing.host.limits import Limits
from kinst.runtime.tracing.host.surroundings import Surroundings
from kinst.runtime.tracing.images.plug_ins import PlugIns
from kinst.runtime.tracing.images.preparing import Prepared
from kinst.runtime.tracing.standalone.probes import KeptProbes
from kinst.targets.c_types import ImageTypes
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.standalone import RING_HEAD, TASK, TIME, WORD, Action, Standalone, member_of, stack_of, width_of

CPUS = 2
STACKS = 0xFFFF_C900_0000_0000
TASKS = 0xFFFF_8880_0100_0000
_NAMES = (b"init", b"sh", b"kworker/0:1")


def ring(kept: Standalone, sites: int, draw: random.Random, code: Sequence[int], pointer: str) -> bytes:
    """A full ring of records of these sites. `code` has addresses to be found on stacks; `pointer` names the stack
    pointer."""
    rows = [_record(kept, number, draw.randrange(sites), draw, code, pointer) for number in range(kept.capacity)]
    head = np.zeros(RING_HEAD // WORD, np.uint64)
    head[0] = kept.capacity
    return head.tobytes() + np.array(rows, np.uint64).tobytes()


def _record(
    kept: Standalone, number: int, site: int, draw: random.Random, code: Sequence[int], pointer: str
) -> list[int]:
    task, depth = draw.randrange(4), draw.randrange(3)
    row = [number + 1, site]
    for name in kept.fields:
        stack = stack_of(name)
        if stack is not None:
            held = min(stack.words, 8 + depth)
            kinds = random.Random(draw.randrange(4))  # a few stacks, and noise where nobody looks
            row += [held, *(kinds.choice((*code, 7)) if word % 3 else draw.randrange(9) for word in range(held))]
            row += [draw.randrange(1 << 64) for _ in range(stack.words - held)]
        elif name == TIME:
            row.append(1_000_000 + 10 * number)
        elif name == TASK:
            row.append(TASKS + 0x4000 * task if task else 0)
        elif member_of(name) is not None:
            text = _NAMES[task % 3].ljust(8, b"\0")[:8]
            row.append(int.from_bytes(text, "little") if member_of(name) in _TEXT else task | draw.randrange(2) << 32)
        elif name == pointer:
            row.append(STACKS + 0x100 * depth)
        elif not name.startswith("arg"):
            row.append(draw.choice((code[0], STACKS + 0x40, 7)))
        else:
            row.append(draw.choice((0, 1, 2, 3, 5, 77, 1000, (1 << 64) - 3, draw.randrange(1 << 64))))
    assert len(row) == 2 + sum(map(width_of, kept.fields))
    return row


_TEXT = range(0x600, 0xA00, 8)  # where Linux has a task's name: whatever the words are, they are read as text


@dataclass
class Drawn:
    """Builds what is traced: a `kinst.runtime.tracing.guests.built.Build`. A run has `rounds` of records."""

    seed: int
    records: int
    rounds: int = 2

    def __call__(
        self, prepared: Prepared, types: ImageTypes, plug_ins: PlugIns, warn: Callable[[str], None]
    ) -> "DrawnTraced":
        return DrawnTraced(self, prepared, types, warn)


class DrawnTraced:
    """See `kinst.runtime.tracing.guests.built.Built`."""

    inlines: ClassVar = None
    has_guest: ClassVar = True
    keyboard: ClassVar = None
    exit_code: ClassVar = 0
    answer: ClassVar = ""

    def __init__(self, drawn: Drawn, prepared: Prepared, types: ImageTypes, warn: Callable[[str], None]) -> None:
        manifest = prepared.manifest
        assert manifest is not None
        self.prepared, self._drawn, self._sites = prepared, drawn, len(manifest.sites)
        fields = Fields(prepared.original, types, prepared.request.system, lambda: CPUS)
        keeping = Keeping(manifest, fields, notes_time=True, notes_tasks=prepared.request.records_tasks)
        self._probes = KeptProbes(prepared, manifest, warn)
        image, facts = prepared.image, prepared.image.facts
        self._host = NoGuest(ClockKind.HOST, facts, self._probes.frame)
        segments = ((one.address, one.load_address, one.size) for one in image.segments if one.kind == PT_LOAD)
        self._code = manifest.functions["address"][:6].tolist()
        self._pointer = facts.registers[facts.stack_pointer]

        def begin(_sites: SiteTable | None) -> None:
            keeping.all_hits()
            wanted: Request = keeping.request()
            kept = Standalone(Action.RECORD, 0, 0, 0, drawn.records, wanted.fields)
            self._probes.expect(kept, self._sites, 1_000_000_000, None, fields.cpu_source)
            self._kept = kept

        loaded = Loaded(image, 0, image.entry, tuple(segments))
        self.surroundings: Surroundings = self._probes.surroundings(self._host, loaded, types, begin, keeping)

    def go(self, limits: Limits, console: Callable[[bytes], None], after_turn: Callable[[], None]) -> End:
        draw = random.Random(self._drawn.seed)
        for turn in range(self._drawn.rounds):
            self._fire(draw, turn)
            after_turn()
            if self._host.machine.end is not None:
                break
        return self._host.machine.end or End.POWER_OFF

    def _fire(self, draw: random.Random, turn: int) -> None:
        data = bytearray(ring(self._kept, self._sites, draw, self._code, self._pointer))
        words = np.frombuffer(data, np.uint64)
        words[0] *= np.uint64(turn + 1)
        places = words[RING_HEAD // WORD :].reshape(self._kept.capacity, -1)
        places[:, 0] += np.uint64(turn * self._kept.capacity)

        def read(address: int, size: int) -> bytes:
            return bytes(data[address : address + size])

        self._probes.fire(self._probes.find(read, is_last=True))

    def ending(self, outcome: Outcome) -> Ending:
        return bare_ending(outcome)


# -- programs ---------------------------------------------------------------------------------------------------------

_PROBES = ("fbt::vfs_*:entry", "fbt::vfs_get:entry", "fbt::vfs_*:return", "fbt::vfs_create:entry,fbt::vfs_get:entry")
_VALUES = ("arg0", "arg1 & 7", "(int)arg1", "arg0 + arg1", "arg0 == 3 ? 7 : arg1 % 5", "pid + tid", "stackdepth", "cpu")
_KEYS = (
    *_VALUES,
    *("probefunc", "probename", "execname", "(uintptr_t)curthread", "caller", "stack()", "stack(2)", "stack()"),
    *(
        "id",
        "epid",
        "strjoin(probefunc, execname)",
        "func(arg0)",
        "stringof(arg0)",
        "substr(execname, 1)",
        "regs[R_SP]",
        "probeprov",
    ),
)
_FAULTS = ("arg0 / (arg1 & 3)", "(*(int *)arg1)", "*(int64_t *)(regs[R_SP] + 8)", "100 % (arg0 & 1)")
_FUNCTIONS = (
    *("count()", "count()", "sum({})", "min({})", "max({})", "avg({})", "stddev({})", "quantize({})"),
    *("lquantize({}, 0, 100, 10)", "llquantize({}, 10, 0, 4, 10)", "quantize({}, arg1 & 3)"),
)
_OTHERS = (
    '{probe} {{ printf("%d %s %d\\n", arg0, probefunc, arg1); }}',
    "{probe} {{ self->x = arg0; }} {probe} /self->x/ {{ @self[self->x] = count(); }}",
    "{probe} {{ n++; @n[n & 3] = count(); }}",
    "{probe} {{ @late = max(timestamp); }}",
    "{probe} /arg0 == 77/ {{ printa(@k0); }}",
    "{probe} /arg0 == 77 && arg1 == 77/ {{ exit(3); }}",
    "{probe} /arg0 == 77 && arg1 == 5/ {{ trunc(@k0); }}",
    'ERROR {{ @errors[arg4] = count(); printf("%d\\n", arg4); }}',
    "ERROR /arg5 & 1/ {{ exit(4); }}",
)


def program(draw: random.Random, function: str) -> str:
    """Clauses most of which only aggregate. `function` is one of the image's vfs_*."""
    clauses = [_clause(draw, number) for number in range(draw.randint(1, 4))]
    if draw.random() < 0.5:
        clauses.append(draw.choice(_OTHERS).format(probe=draw.choice(_PROBES)))
    return "\n".join(clauses).replace("vfs_get", function)


def _clause(draw: random.Random, number: int) -> str:
    def expression(*more: str) -> str:
        return draw.choice(_FAULTS if draw.random() < 0.08 else (*_VALUES, *more))

    keys = [expression(*_KEYS) for _ in range(draw.randint(0, 3))]
    function = draw.choice(_FUNCTIONS).format(expression() + " + 0")
    predicate = f"/({expression()}) > {draw.choice((0, 2))} / " if draw.random() < 0.4 else ""
    key = f"[{', '.join(keys)}]" if keys else ""
    return f"{draw.choice(_PROBES)} {predicate}{{ @k{number}{key} = {function}; }}"


def options(draw: random.Random) -> list[Any]:
    """Of the command."""
    chosen: list[Any] = ["-q"] if draw.random() < 0.7 else []
    if draw.random() < 0.2:
        chosen += ["-x", f"aggsize={draw.choice((256, 1024, 4096))}"]
    return chosen
