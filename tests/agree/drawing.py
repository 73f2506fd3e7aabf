"""A seed and an image -> a program: clauses of all deliveries, by themselves and on each other's probes."""

import random
from dataclasses import dataclass
from typing import Final

from tests.agree.expressions import FUNCTIONS, Expressions, Look, listed, parameters
from tests.agree.program import COUNTED, Clause, Program
from tests.agree.subjects import Subject
from tests.agree.tasks import TASKS

_LOOKS: Final = (Look.PROBE, Look.REGISTERS, Look.LATER, Look.NOW)
_ALWAYS: Final = {
    Look.PROBE: "1",
    Look.REGISTERS: "arg0 == arg0",
    Look.LATER: "timestamp >= 0",
    Look.NOW: "caller || 1",
}
_ALL: Final = ("fbt:::entry", "kinst:::", "fbt:::")  # so many records that there is no room for more, too
_FORMS: Final = (  # of probe descriptions, and how often of a hundred
    *(
        ("fbt::{function}:entry", 30),
        ("fbt::{function}:return", 20),
        ("fbt::{function}:", 10),
        ("fbt::{part}*:{end}", 5),
    ),
    *(("kinst::{at}", 18), ("kinst::{whole}:", 4), ("kinst::{inlined}:{end}", 4), ("{static}", 6)),
    *((form, 1) for form in _ALL),
)
_OPTIONS: Final = (
    *("aggsize=512", "aggsize=4k", "bufsize=64", "bufsize=1k", "switchrate=1ms", "switchrate=3ms", "aggrate=1ms"),
    *("aggrate=100us", "strsize=8", "strsize=32", "dynvarsize=256", "dynvarsize=4k", "flowindent", "bufpolicy=fill"),
    *("bufpolicy=ring", "bufpolicy=switch", "nspec=2", "specsize=64", "statusrate=1ms", "aggsortkey", "aggsortrev"),
    *("stackframes=2", "aggzoom", "agghist", "aggpack", "cleanrate=1ms", "aggsortpos=1", "rawbytes", "temporal"),
    *("aggpercpu", "bufresize=manual", "noerror", "stackindent=2"),
)
_PAIRED: Final = (("bufpolicy=ring", "bufsize=256"), ("bufpolicy=fill", "bufsize=512"), ("nspec=1", "cleanrate=1ms"))


@dataclass(frozen=True, slots=True)
class _Aggregation:
    """An aggregation as all clauses of a program use it."""

    name: str
    keys: tuple[str, ...]  # of "number", "text", "stack", "address"
    function: str

    @property
    def look(self) -> Look:
        """What a clause that writes it looks at, at least."""
        return Look.NOW if {"stack", "address"} & {*self.keys} else Look.PROBE


def drawn(seed: int, number: int, subject: Subject) -> Program:
    """The program of this seed and number for an image."""
    draw = random.Random(f"{seed} {number} {subject.name}")
    return _counting(draw, subject) if draw.random() < 0.12 else _Drawing(draw, subject).program()


def _counting(draw: random.Random, subject: Subject) -> Program:
    """A program that images can do by themselves: each probe counts under its own key. Jumps take longer than the
    instructions in their place, so that there are none in what depends on the time."""
    entries = [name for name, _ in subject.entries if name not in subject.timed]
    places = [place for place in subject.instructions if place[0] not in subject.timed]
    probes = tuple(
        f"fbt::{name}:entry" for name in draw.sample(entries, min(len(entries), draw.choice((1, 3, 10, 40))))
    )
    where = draw.sample(places, draw.choice((1, 2, 8)))
    instructions = tuple(f"kinst::{function}:{offset}" for function, offset in where)
    key = "probefunc, probename"
    clauses = [
        Clause(probes, "", (f"@c0[{key}] = count()",)),
        Clause(
            instructions, draw.choice(("", 'probename != "x"')), (f"@c1[{key}] = {draw.choice(('count()', 'sum(2)'))}",)
        ),
        Clause(tuple(draw.sample(probes, 1)), "", (f"@c2[{key}] = {draw.choice(('count()', 'sum(id)', 'max(7)'))}",)),
    ]
    chosen = sorted(draw.sample(range(3), draw.choice((1, 2, 3))))
    printed = tuple(f'printa("c{at}<%s %s %@d>\\n", @c{at})' for at in chosen)
    return Program(
        subject.name, 1, (("-q",),), (*(clauses[at] for at in chosen), Clause(("END",), "", printed)), is_counting=True
    )


class _Drawing:
    """One program in the making."""

    def __init__(self, draw: random.Random, subject: Subject) -> None:
        self._draw, self._subject = draw, subject
        self._say = Expressions(draw, subject.registers)
        self._cpus = 2 if draw.random() < 0.4 else 1
        self._functions = [
            name for name, _ in draw.sample(subject.entries, min(len(subject.entries), draw.choice((1, 2, 4))))
        ]
        self._aggregations = [self._aggregation(f"a{at}") for at in range(draw.choice((1, 2, 3)))]
        self._written: set[str] = set()  # aggregations that some clause has
        self._used: list[tuple[str, ...]] = []  # probes of clauses so far

    def program(self) -> Program:
        """All of it."""
        draw = self._draw
        clauses: list[Clause] = []
        for _ in range(draw.choice((4, 5, 6, 8) if self._subject.is_large else (1, 2, 2, 3, 3, 4, 5))):
            clauses += self._group()
        if draw.random() < 0.55:
            clauses += self._ticks()
        ending = self._ending()
        if draw.random() < 0.08:
            ticks = self._subject.ticks
            clauses.append(
                Clause((draw.choice((*ticks, *[one for probes in self._used for one in probes])),), "", ("exit(3)",))
            )
            ending = ()
        elif not ending and draw.random() < 0.75:
            clauses = self._with_counted(clauses)
        clauses += self._outside()
        words = (*self._options(), *ending)
        return Program(self._subject.name, self._cpus, words, tuple(clauses))

    def _aggregation(self, name: str) -> _Aggregation:
        draw = self._draw
        kinds = ("number", "number", "text", "text", "stack", "address")
        keys = tuple(draw.choice(kinds) for _ in range(draw.choice((0, 1, 1, 2, 3))))
        return _Aggregation(name, keys, draw.choice(FUNCTIONS))

    # -- probes -------------------------------------------------------------------------------------------------------

    def _probes(self, look: Look) -> tuple[str, ...]:
        """Those of a clause: often some that another clause has already."""
        draw = self._draw
        known = [probes for probes in self._used if look < Look.NOW or not {*_ALL} & {*probes}]
        if known and draw.random() < 0.4:
            return draw.choice(known)
        found = tuple(dict.fromkeys(self._probe(look) for _ in range(draw.choice((1, 1, 1, 2, 3)))))
        self._used.append(found)
        return found

    def _probe(self, look: Look) -> str:
        draw, subject = self._draw, self._subject
        function = draw.choice(self._functions)
        inside = [one for one in subject.instructions if one[0] == function] or subject.instructions
        forms = [(form, weight) for form, weight in _FORMS if self._has(form, look)]
        form = draw.choices([form for form, _ in forms], [weight for _, weight in forms])[0]
        name, offset = draw.choice(inside)
        return form.format(
            function=function,
            part=function[: max(1, len(function) - 2)],
            end=draw.choice(("entry", "return")),
            at=f"{name}:{offset}",
            whole=draw.choice(subject.whole),
            static=draw.choice(subject.static or ("",)),
            inlined=draw.choice(subject.inlined or ("",)),
        )

    def _has(self, form: str, look: Look) -> bool:
        """Whether the image has such probes, and a run is not too long with them."""
        subject = self._subject
        if form in _ALL:
            return look < Look.NOW and not subject.is_large
        return bool(subject.static if "{static}" in form else subject.inlined if "{inlined}" in form else True)

    # -- clauses ------------------------------------------------------------------------------------------------------

    def _group(self) -> list[Clause]:
        if self._subject.is_large and self._draw.random() < 0.35:
            return [*self._draw.choice(TASKS)]
        match self._draw.randrange(10):
            case 0:
                return self._latency()
            case 1:
                return self._speculation()
            case _:
                return [self._clause(self._draw.choice(_LOOKS))]

    def _clause(self, look: Look) -> Clause:
        draw = self._draw
        probes = self._probes(look)
        predicate = self._say.predicate(look if draw.random() < 0.6 else Look.PROBE)
        if draw.random() < 0.03:
            return Clause(probes, predicate, ())
        statements = [self._statement(look) for _ in range(draw.choice((1, 1, 2, 3)))]
        return Clause(probes, predicate, tuple(statements))

    def _statement(self, look: Look) -> str:
        if self._draw.random() < 0.07:
            condition, then = self._say.number(look, 1), self._simple(look)
            return f"if ({condition}) {{ {then}; }} else {{ {self._simple(look)}; }}"
        return self._simple(look)

    def _simple(self, look: Look) -> str:
        chance = self._draw.random()
        if look >= Look.LATER and chance < 0.4:
            return self._assignment(look)
        if look is Look.NOW and chance < 0.85:
            return self._action()
        fit = [one for one in self._aggregations if one.look <= look]
        if not fit:
            self._aggregations.append(_Aggregation(f"a{len(self._aggregations)}", ("text",), "count"))
            fit = self._aggregations[-1:]
        return self._aggregated(self._draw.choice(fit), look)

    def _aggregated(self, one: _Aggregation, look: Look) -> str:
        self._written.add(one.name)
        keys = listed([self._key(kind, look) for kind in one.keys])
        value = parameters(self._draw, one.function, self._say.number(look))
        return f"@{one.name}{f'[{keys}]' if keys else ''} = {one.function}({value})"

    def _key(self, kind: str, look: Look) -> str:
        match kind:
            case "number":
                return self._say.few(look)
            case "text":
                return self._say.text(look)
            case "stack":
                return self._draw.choice(("stack(3)", "stack(3)", "ustack(3)"))[:9]
            case _:
                return self._draw.choice(("func(caller)", "func(arg0)"))

    def _assignment(self, look: Look) -> str:
        draw, value = self._draw, self._say.number(look)
        choices = (
            *(f"g0 = {value}", "g0++", f"g1 += {value}", f"self->a = {value}", "self->a++", "self->b = self->a + 1"),
            *(f"this->x = {value}", f"arr[{self._say.few(look)}] = {value}", f"arr[{self._say.few(look)}]++"),
            *(
                "self->t = timestamp",
                "self->t = vtimestamp",
                f"self->s = {self._say.text(Look.PROBE)}",
                "gs = probefunc",
            ),
            *("self->a = 0", "self->t = 0", "arr[1] = 0", "g1 = g0 + 1", f"this->x = this->x + {value}"),
        )
        return draw.choice(choices)

    def _action(self) -> str:
        draw, say = self._draw, self._say
        value = say.number(Look.NOW)
        return draw.choice(
            (
                *(
                    f"trace({value})",
                    f"trace({say.text(Look.NOW)})",
                    f'printf("%d %s\\n", {value}, {say.text(Look.NOW)})',
                ),
                *(
                    "stack()",
                    "stack(2)",
                    "ustack()",
                    "tracemem(arg0, 8)",
                    "trace(timestamp)",
                    "trace(self->a)",
                    "trace(g0)",
                ),
                *(f"trace({say.number(Look.LATER)})", "trace(copyinstr(arg0))", 'printf("%s\\n", stringof(arg1))'),
                *('printf("%a", caller)', "sym(arg0)", "print(arg0)", "trace(vtimestamp)", "trace(arr[arg0])"),
                *("this->w = stringof(arg0)", "trace(walltimestamp)", "trace(gs)", "trace(self->s)", "mod(caller)"),
                *("chill(3000)", 'setopt("aggrate", "2ms")'),
            )
        )

    def _latency(self) -> list[Clause]:
        draw = self._draw
        function = draw.choice(self._functions)
        time = draw.choice(("timestamp", "timestamp", "vtimestamp"))
        one = draw.choice(self._aggregations)
        name, key = draw.choice((("lf", "probefunc"), ("lc", "cpu"), ("la", "arg0 & 7")))
        end = f"@{name}[{key}] = quantize({time} - self->t)"
        if one.look is Look.PROBE and draw.random() < 0.5:
            end = self._aggregated(one, Look.LATER)
        return [
            Clause((f"fbt::{function}:entry",), "", (f"self->t = {time}",)),
            Clause((f"fbt::{function}:return",), "self->t", (end, "self->t = 0")),
        ]

    def _speculation(self) -> list[Clause]:
        draw, say = self._draw, self._say
        function = draw.choice(self._functions)
        condition = draw.choice(("arg1 & 1", "arg0", "timestamp & 64", say.number(Look.LATER, 1)))
        record = draw.choice(
            ("trace(timestamp)", "trace(arg0)", 'printf("spec %s\\n", probefunc)', "stack(2)", "trace(g0)")
        )
        return [
            Clause((f"fbt::{function}:entry",), "", ("self->sp = speculation()",)),
            Clause(self._probes(Look.NOW), "self->sp", ("speculate(self->sp)", record)),
            Clause((f"fbt::{function}:return",), f"self->sp && ({condition})", ("commit(self->sp)", "self->sp = 0")),
            Clause((f"fbt::{function}:return",), "self->sp", ("discard(self->sp)", "self->sp = 0")),
        ]

    def _ticks(self) -> list[Clause]:
        """What looks at aggregations and variables in between."""
        draw = self._draw
        found = []
        for _ in range(draw.choice((1, 1, 2))):
            probe = draw.choice(self._subject.ticks)
            statements = [self._in_tick() for _ in range(draw.choice((1, 2, 3)))]
            found.append(Clause((probe,), draw.choice(("", "", "", "g0 & 1", "timestamp > 500000")), tuple(statements)))
        return found

    def _in_tick(self) -> str:
        draw = self._draw
        if not self._written:
            return draw.choice(("trace(g0)", "g0 = 0", "arr[1]++", "@tick = count()", "trace(timestamp)"))
        name = f"@{draw.choice(sorted(self._written))}"
        return draw.choice(
            (
                *(f"printa({name})", f"printa({name})", f"clear({name})", f"trunc({name})", f"trunc({name}, 2)"),
                *(f"trunc({name}, -1)", f"normalize({name}, 3)", f"denormalize({name})", "trace(g0)", "trace(arr[1])"),
                *("g0 = 0", "g1++", "arr[1]++", "@tick = count()", "@prof[func(arg0)] = count()", 'gs = "tick"'),
                *('setopt("aggsortrev")', "@ticks = sum(g0)", "trace(timestamp)", 'printf("%d %d\\n", g0, g1)'),
            )
        )

    def _outside(self) -> list[Clause]:
        draw = self._draw
        found = []
        if draw.random() < 0.3:
            found.append(
                Clause(("BEGIN",), "", (draw.choice(("g0 = 5", "arr[1] = 3", "self->a = 7", "trace(timestamp)")),))
            )
        if draw.random() < 0.15:
            found.append(
                Clause(("ERROR",), "", (draw.choice(("@err[arg4] = count()", "g1++", "trace(arg4)", "g0 = arg2")),))
            )
        if draw.random() < 0.8:
            found.append(Clause(("END",), "", ('printf("%d %d %d %s\\n", g0, g1, arr[1], gs)',)))
        return found

    def _with_counted(self, clauses: list[Clause]) -> list[Clause]:
        """With clauses whose hits the independent count knows, and a printout of them."""
        draw = self._draw
        functions = dict.fromkeys([*self._functions, *(name for name, _ in draw.sample(self._subject.entries, 1))])
        probes = tuple(f"fbt::{name}:entry" for name in functions)
        look = draw.choice(_LOOKS)
        counting = Clause(probes, "" if look is Look.PROBE else _ALWAYS[look], (COUNTED,), is_essential=True)
        place = draw.randrange(len(clauses) + 1)
        printed = Clause(("END",), "", (r'printa("calls<%s %@d>\n", @calls)',), is_essential=True)
        return [*clauses[:place], counting, *clauses[place:], printed]

    # -- how it is run ------------------------------------------------------------------------------------------------

    def _options(self) -> tuple[tuple[str, ...], ...]:
        draw = self._draw
        chosen = draw.sample(_OPTIONS, draw.choice((0, 0, 0, 1, 1, 2, 3)))
        if draw.random() < 0.08:
            chosen += draw.choice(_PAIRED)
        words = [("-x", option) for option in dict.fromkeys(chosen)]
        quiet = (("-q",),) if draw.random() < 0.7 else ()
        form = (("--format", "json"),) if draw.random() < 0.05 else ()
        return (("-Z",), ("-w",), *quiet, *form, *words)

    def _ending(self) -> tuple[tuple[str, ...], ...]:
        draw, subject = self._draw, self._subject
        match draw.random():
            case chance if chance < 0.1:
                return (("--timeout", f"{draw.randrange(50, subject.time)}us"),)
            case chance if chance < 0.17 and subject.until:
                return (("--until", draw.choice(subject.until)),)
            case chance if chance < 0.21 and subject.calls:
                self._cpus = 1
                return (("--call", draw.choice(subject.calls)),)
            case _:
                return ()
