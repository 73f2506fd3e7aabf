"""Drawn D programs over drawn records of an image, as if a QEMU had recorded them."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.program import instructions_of
from kinst.rewriter.shell.progress import silent
from kinst.runtime.live.fields import Fields, joined
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
from kinst.targets.instruction import Flow
from kinst.targets.manifest.packed import ProbeKind
from kinst.targets.standalone import RING_HEAD, TASK, TIME, WORD, Action, Standalone, member_of, stack_of, width_of

CPUS = 2
STACKS = 0xFFFF_C900_0000_0000
TASKS = 0xFFFF_8880_0100_0000
_NAMES = (b"init", b"sh", b"kworker/0:1")


def hits(
    fields: Sequence[str], number: int, sites: int, draw: random.Random, code: Sequence[int], pointer: str
) -> list[list[int]]:
    """So many records of these sites, in order. `code` has addresses to be found on stacks; `pointer` names the stack
    pointer."""
    return [_record(fields, which, draw.randrange(sites), draw, code, pointer) for which in range(number)]


def in_forms(rows: list[list[int]], fields: Sequence[str], kept: Standalone, of_sites: NDArray[np.intp]) -> bytes:
    """What a mix keeps of records with all these fields: the counters' new hits, and after them a ring that has had
    so many records and is full of them."""
    starts = dict(zip(fields, np.cumsum([2, *map(width_of, fields)]).tolist(), strict=False))
    counters, places, rank = np.zeros(kept.counters, np.uint64), list[list[int]](), np.cumsum(of_sites < 0) - 1
    for row in rows:
        form = int(of_sites[row[1]])
        if form < 0:
            counters[rank[row[1]]] += np.uint64(1)
            continue
        place = [len(places) + 1, row[1]]
        for name in kept.record_forms[form]:
            place += _field(row, starts, name)
        places.append([*place, *[0xDEAD] * (kept.stride // WORD - len(place))])
    head = np.zeros(RING_HEAD // WORD, np.uint64)
    head[0] = len(places)
    data = np.array(places, np.uint64).reshape(-1, kept.stride // WORD)
    return counters.tobytes().ljust(kept.ring - kept.address, b"\0") + head.tobytes() + data.tobytes()


def _field(row: list[int], starts: dict[str, int], name: str) -> list[int]:
    """The words of one field; of the stack, which all records have at its deepest, a part."""
    stack = stack_of(name)
    if stack is None:
        return row[starts[name] : starts[name] + 1]
    at = next(start for other, start in starts.items() if stack_of(other) is not None)
    return [min(row[at], stack.words), *row[at + 1 : at + 1 + stack.words]]


def _record(
    fields: Sequence[str], number: int, site: int, draw: random.Random, code: Sequence[int], pointer: str
) -> list[int]:
    task, depth = draw.randrange(4), draw.randrange(3)
    row = [number + 1, site]
    for name in fields:
        stack = stack_of(name)
        if stack is not None:
            held = min(stack.words, 8 + depth)
            kinds = random.Random(draw.randrange(4))  # a few stacks, and noise where nobody looks
            row += [held, kinds.choice(code)]  # the address that the function returns to
            row += [kinds.choice((*code, 7)) if word % 3 else draw.randrange(9) for word in range(1, held)]
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
    assert len(row) == 2 + sum(map(width_of, fields))
    return row


_TEXT = range(0x600, 0xA00, 8)  # where Linux has a task's name: whatever the words are, they are read as text


@dataclass
class Drawn:
    """Builds what is traced: a `kinst.runtime.tracing.guests.built.Build`. A run has `rounds` of records. `is_mix`:
    each site keeps what is read there; else all of them keep the same."""

    seed: int
    records: int
    rounds: int = 2
    notes_time: bool = True
    is_mix: bool = False
    forms: int = 0  # how many there were, with that of counters

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
        keeping = Keeping(manifest, fields, notes_time=drawn.notes_time, notes_tasks=prepared.request.records_tasks)
        self._probes, self._cpu = KeptProbes(prepared, manifest, warn), fields.cpu_source
        image, facts = prepared.image, prepared.image.facts
        self._host = NoGuest(ClockKind.HOST, facts, self._probes.frame)
        segments = ((one.address, one.load_address, one.size) for one in image.segments if one.kind == PT_LOAD)
        program = prepared.program()
        found = instructions_of(program, np.arange(len(program.functions)), silent)
        # Where functions return to: after calls, as whoever looks for callers wants it.
        self._code = (found.address + found.size)[found.flow == Flow.CALL][:6].tolist()
        self._pointer = facts.registers[facts.stack_pointer]

        def begin(sites: SiteTable | None) -> None:
            assert sites is not None
            keeping.enabled(sites.is_recorded, has_actions=False)
            wanted = replace(keeping.request(), capacity=drawn.records)
            every = wanted.kept_at(0, 0, 0)
            self._fields = joined(field for form in every.record_forms for field in form)
            drawn.forms = max(1, len(every.forms) + every.has_counters)
            kept = every if drawn.is_mix else Standalone(Action.RECORD, 0, 0, 0, drawn.records, self._fields)
            forms = np.zeros(self._sites, np.intp)
            if kept.action is Action.MIX:
                forms = np.frombuffer(wanted.of_sites, np.uint8).astype(np.intp) - 1
            elif not kept.has_ring:
                forms = forms - 1
            kept = replace(kept, counters=int((forms < 0).sum())) if kept.has_ring else kept
            self._probes.expect(kept, forms, 1_000_000_000, None, fields.cpu_source)
            self._kept, self._forms = kept, forms

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
        number, kept = self._drawn.records, self._kept
        rows = hits(self._fields, number, self._sites, draw, self._code, self._pointer)
        self._settle(rows)
        kept_all = kept if kept.has_ring else replace(kept, counters=self._sites)
        data = in_forms(rows, self._fields, kept_all, self._forms)
        # As if the guest had begun again: counters and the ring are new each time, and less than they were.
        self._probes.expect(kept, self._forms, 1_000_000_000, None, self._cpu)
        self._probes.fire(self._probes.find(lambda address, size: data[address : address + size], is_last=True))

    def _settle(self, rows: list[list[int]]) -> None:
        """Let the PC be where the site is, and arguments at returns what they are: an offset, the value, and nothing
        else."""
        manifest = self.prepared.manifest
        assert manifest is not None
        kinds = manifest.probes["kind"][manifest.enablings["probe"]]
        returns = {*manifest.enablings["site"][kinds == ProbeKind.FBT_RETURN].tolist()}
        starts = manifest.functions["address"][manifest.sites["function"]]
        offsets, addresses = (manifest.sites["address"] - starts).tolist(), manifest.sites["address"].tolist()
        facts = self.prepared.image.facts
        pc = facts.registers[facts.pc]
        at = dict(zip(self._fields, np.cumsum([2, *map(width_of, self._fields)]).tolist(), strict=False))
        arguments = [name for name in self._fields if name.startswith("arg") and name != "arg1"]
        for row in rows:
            if pc in at:
                row[at[pc]] = addresses[row[1]]
            for name in arguments if row[1] in returns else ():
                row[at[name]] = offsets[row[1]] if name == "arg0" else 0

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


def mixed(draw: random.Random, function: str) -> str:
    """The same, and clauses that only count, at all functions or at some."""
    counted = [f"{draw.choice(_COUNTED)} {{ @c{number}{draw.choice(_OWN_KEYS)} = count(); }}" for number in range(2)]
    clauses = [*counted[: draw.randint(1, 2)], *program(draw, function).splitlines()]
    draw.shuffle(clauses)
    return "\n".join(clauses).replace("vfs_get", function)


_COUNTED = ("fbt:::entry", "fbt::vfs_*:entry", "fbt::vfs_get:entry", "fbt:::return")
_OWN_KEYS = ("", "[probefunc]", "[probename, 3]", "[epid & 1]")


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
