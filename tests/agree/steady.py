"""A seed and a sample kernel -> a program that QEMU can run as well, and whose output is not of the time: it asks for
no time, and for nothing that --on refuses."""

import random
from collections import Counter
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from kinst.rewriter.cli import rewrite
from kinst.targets.image import open_image
from kinst.targets.manifest.packed import Manifest, ProbeKind, find_manifest
from tests.agree.expressions import FUNCTIONS, RECORDED, Expressions, Look, listed, parameters
from tests.agree.program import COUNTED, Clause, Program
from tests.agree.running import invoked
from tests.agree.subjects import Subject
from tests.samples.machines import MACHINES
from tests.system.cases import BY_NAME
from tests.system.plain import manifest_of

_LOOKS: Final = (Look.PROBE, Look.REGISTERS, Look.LATER, Look.NOW)
_FORMS: Final = (("fbt::{name}:entry", 70), ("fbt::{name}:return", 25), ("{part}", 5))
# Called first, with registers left as each machine begins; and what reads its device tree.
_OF_MACHINES: Final = ("start_high", "kmain", "machine_start")
# Called at ticks of the clock, of which a QEMU on a busy host has more; and callouts, which begin with registers as
# what a tick interrupted leaves them.
_OF_TICKS: Final = (
    *("callout_process", "critical_exit_preempt", "callout_execute"),
    *("if_poll", "if_sample", "if_watchdog", "clock_stop"),
)
_OF_COUNTS: Final = ("count()", "sum(3)", "max(id)", "avg(7)", "quantize(5)")
_AT_ENTRIES: Final = ("caller", "stack(2)", "stack(3)", "stackdepth")  # within a function they may not be recorded
_FIRST: Final = ("g0 = 5", "arr[1] = 3", "self->a = 7", "gs = strjoin(gs, probename)")
_OPTIONS: Final = (
    *("aggsortkey", "aggsortrev", "aggsortpos=1", "strsize=32", "stackframes=2", "flowindent", "aggzoom", "agghist"),
    *("aggpack", "stackindent=2", "rawbytes"),
)


def drawn_steady(seed: int, number: int, subject: Subject) -> Program:
    """The program of this seed and number for an image."""
    return _Drawing(random.Random(f"steady {seed} {number} {subject.name}"), subject).program()


@cache
def jumps(image: str) -> frozenset[tuple[str, int]]:
    """Functions, and the kinds of their probes, all of whose sites can be jumps."""
    sample = MACHINES[image.removeprefix("kernel-")]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "alone.elf"
        done = invoked(rewrite, [*sample.alone, "--probe", "fbt:::", str(sample.image), "-o", str(path)])
        alone = find_manifest(open_image(path))
    assert alone is not None, done.errors
    left, every = _probes_of(alone), _probes_of(manifest_of(BY_NAME[image], "fbt:::"))
    return frozenset(one for one, count in every.items() if left[one] == count)


def _probes_of(manifest: Manifest) -> Counter[tuple[str, int]]:
    """How many sites each function has for each kind of probe."""
    functions = manifest.sites["function"][manifest.enablings["site"]].tolist()
    kinds = manifest.probes["kind"][manifest.enablings["probe"]].tolist()
    return Counter((manifest.function_name(one), kind) for one, kind in zip(functions, kinds, strict=True))


class _Drawing:
    """One program in the making."""

    def __init__(self, draw: random.Random, subject: Subject) -> None:
        self._draw, self._subject = draw, subject
        self._say = Expressions(draw, subject.registers, RECORDED)
        entries = [name for name, _ in subject.entries if name not in {*subject.timed, *_OF_TICKS}]
        self._jumps = jumps(subject.name)
        entries = [name for name in entries if (name, ProbeKind.FBT_ENTRY) in self._jumps and name not in _OF_MACHINES]
        self._entries = entries
        self._functions = draw.sample(entries, min(len(entries), draw.choice((1, 2, 4, 8))))
        self._places = [one for one in subject.instructions if one[0] not in {*subject.timed, *_OF_MACHINES}]
        self._used: list[tuple[str, ...]] = []  # probes of clauses so far
        self._written = 0  # aggregations

    def program(self) -> Program:
        """All of it."""
        draw = self._draw
        clauses = [self._clause(draw.choice(_LOOKS)) for _ in range(draw.choice((1, 2, 2, 3, 4)))]
        # Within a function nothing tells arguments: sites there count, while others record.
        if draw.random() < 0.25:
            clauses.append(Clause(self._within(), "", (f"@within[probefunc, probename] = {draw.choice(_OF_COUNTS)}",)))
        if draw.random() < 0.25:
            clauses.append(Clause(self._every(), "", (f"@every[probefunc] = {draw.choice(_OF_COUNTS)}",)))
        if draw.random() < 0.2:
            clauses += self._nested()
        draw.shuffle(clauses)
        if draw.random() < 0.3:
            clauses.append(Clause(("BEGIN",), "", (draw.choice(_FIRST),)))
        if draw.random() < 0.5:
            clauses += self._counted()
        clauses.append(Clause(("END",), "", ('printf("%d %d %d %s\\n", g0, g1, arr[1], gs)',)))
        options = draw.sample(_OPTIONS, draw.choice((0, 0, 1, 2)))
        return Program(self._subject.name, 1, tuple(("-x", option) for option in options), tuple(clauses))

    def _clause(self, look: Look) -> Clause:
        draw = self._draw
        probes = self._probes()
        predicate = self._say.predicate(draw.choice((look, Look.PROBE))) if look < Look.LATER else self._condition(look)
        is_entry = all(one.endswith(":entry") for one in probes)
        statements = tuple(self._statement(look, is_entry=is_entry) for _ in range(draw.choice((1, 1, 2, 3))))
        return Clause(probes, predicate, statements)

    def _condition(self, look: Look) -> str:
        known = ("", "", "self->a", "!self->a", "g0 & 1", "g1 < 100", "arr[arg0]", "self->a && arg0", "this->x")
        return self._draw.choice((*known, self._say.number(look, 1)))

    def _probes(self) -> tuple[str, ...]:
        """Those of a clause: often some that another clause has already."""
        if self._used and self._draw.random() < 0.4:
            return self._draw.choice(self._used)
        found = tuple(dict.fromkeys(self._probe() for _ in range(self._draw.choice((1, 1, 2, 4)))))
        self._used.append(found)
        return found

    def _every(self) -> tuple[str, ...]:
        """The entries of more functions than others look at, which only count."""
        names = sorted({*self._entries} - {*self._functions})
        return tuple(
            f"fbt::{name}:entry" for name in (*self._functions[:1], *self._draw.sample(names, min(len(names), 9)))
        )

    def _within(self) -> tuple[str, ...]:
        """Instructions within functions, of which few can be jumps, and whose arguments nothing tells."""
        return tuple(
            f"kinst::{name}:{offset}" for name, offset in self._draw.sample(self._places, self._draw.choice((1, 2, 4)))
        )

    def _probe(self) -> str:
        draw = self._draw
        name = draw.choice(self._functions)
        has_return = (name, ProbeKind.FBT_RETURN) in self._jumps
        forms = [(form, weight) for form, weight in _FORMS if has_return or not form.endswith(":return")]
        form = draw.choices([form for form, _ in forms], [weight for _, weight in forms])[0]
        return form.format(name=name, part=f"fbt::{name[: max(1, len(name) - 2)]}*:entry")

    def _statement(self, look: Look, *, is_entry: bool) -> str:
        draw, say = self._draw, self._say
        if look >= Look.LATER and draw.random() < 0.4:
            return self._assignment(look)
        if look is Look.NOW and draw.random() < 0.6:
            known = (f"trace({say.number(look)})", f"trace({say.text(look)})", "trace(self->a)", "trace(gs)")
            stack = ("stack(2)", "trace(caller)", 'printf("%a\\n", caller)', "sym(caller)") if is_entry else ()
            shown = f'printf("%d %s %x\\n", {say.number(look)}, {say.text(look)}, {say.number(look)})'
            chosen: str = draw.choice((*known, *stack, shown))
            return chosen
        return self._aggregated(look, is_entry=is_entry)

    def _assignment(self, look: Look) -> str:
        draw, value = self._draw, self._say.number(look)
        few = self._say.few(look)
        known = ("g0++", "self->a++", "self->b = self->a + 1", "gs = probefunc", "self->a = 0", "arr[1] = 0")
        with_value = (f"g0 = {value}", f"g1 += {value}", f"self->a = {value}", f"this->x = {value}")
        return draw.choice((*known, *with_value, f"arr[{few}] = {value}", f"arr[{few}]++"))

    def _aggregated(self, look: Look, *, is_entry: bool) -> str:
        """An aggregation of its own: what it is made of need not fit what others are."""
        draw, self._written = self._draw, self._written + 1
        keys = listed([self._key(look, is_entry=is_entry) for _ in range(draw.choice((0, 1, 1, 2)))])
        function = draw.choice(FUNCTIONS)
        value = parameters(draw, function, self._say.number(look))
        return f"@a{self._written}{f'[{keys}]' if keys else ''} = {function}({value})"

    def _key(self, look: Look, *, is_entry: bool) -> str:
        draw = self._draw
        if look is Look.NOW and is_entry and draw.random() < 0.5:
            return draw.choice(_AT_ENTRIES)
        return self._say.few(look) if draw.random() < 0.5 else self._say.text(look)

    def _nested(self) -> list[Clause]:
        """How deep a function's calls of itself and of others are, by the thread."""
        known = [name for name in self._functions if (name, ProbeKind.FBT_RETURN) in self._jumps]
        if not known:
            return []
        function = self._draw.choice(known)
        return [
            Clause((f"fbt::{function}:entry",), "", ("self->b++", "@depth[self->b] = count()")),
            Clause((f"fbt::{function}:return",), "self->b", ("@left[probefunc, self->b] = count()", "self->b--")),
        ]

    def _counted(self) -> list[Clause]:
        """A count that the independent one knows."""
        probes = tuple(f"fbt::{name}:entry" for name in self._functions)
        printed = Clause(("END",), "", (r'printa("calls<%s %@d>\n", @calls)',), is_essential=True)
        return [Clause(probes, "", (COUNTED,), is_essential=True), printed]
