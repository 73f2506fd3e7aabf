"""Expressions by what they look at, which decides how the hits of a clause may be delivered.

A clause that looks at the probe alone is counted; at registers, recorded; at the time and at variables, recorded and
told in order; at memory, tasks and stacks, told of each hit.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final


class Look(IntEnum):
    """What a clause looks at; each looks at what those before it do as well."""

    PROBE = 0
    REGISTERS = 1
    LATER = 2
    NOW = 3


_NUMBERS: Final = ("0", "1", "2", "3", "7", "64", "4096", "-1", "0x7fffffff", "0xffffffff80000000")
_BINARY: Final = ("+", "-", "*", "&", "|", "^", "==", "!=", "<", "<=", ">", ">=")
_OF_PROBE: Final = ("cpu", "id", "epid", "1", "7")
_LATER: Final = (
    *("timestamp", "vtimestamp", "g0", "g1", "self->a", "self->b", "this->x", "arr[arg0]", "arr[1]", "arr[g0 & 7]"),
    *("timestamp - self->t", "timestamp / 1000", "self->t", "arr[cpu]"),
)
_NOW: Final = (
    *("caller", "stackdepth", "pid", "tid", "ppid", "walltimestamp", "strlen(probefunc)", "curthread->td_tid"),
    *("*(uint32_t *)arg0", "*(uint8_t *)arg1", "strlen(stringof(arg0))", "arg0 / g0", "ucaller", "errno", "uid"),
    *("*(uint32_t *)copyin(arg0, 4)", "(int64_t)alloca(8) != 0", "ipl", "strlen(execname)", "strlen(copyinstr(arg1))"),
)
_FAULTY: Final = ("curthread->td_tid",)  # needs types that few images have
_TEXTS: Final = {
    Look.PROBE: ("probefunc", "probename", "probemod", "probeprov", '"text"'),
    Look.REGISTERS: ("probefunc", "probename"),
    Look.LATER: ("probefunc", '"later"', "probename"),
    Look.NOW: ("execname", "stringof(arg0)", 'strjoin(probefunc, "!")', "substr(probefunc, 2)", "self->s", "gs"),
}
_STEADY: Final = ("g0", "g1", "self->a", "self->b", "this->x", "arr[arg0]", "arr[1]", "arr[g0 & 7]", "arr[cpu]")
_OF_TASKS: Final = ("pid", "tid", "ppid", "uid", "strlen(probefunc)", "strlen(execname)")
FUNCTIONS: Final = ("count", "sum", "min", "max", "avg", "stddev", "quantize", "lquantize", "llquantize")


@dataclass(frozen=True, slots=True)
class Words:
    """What expressions are made of that look at more than registers, and their texts."""

    later: tuple[str, ...]
    now: tuple[str, ...]
    texts: Mapping[Look, tuple[str, ...]]


ALL: Final = Words(_LATER, tuple(one for one in _NOW if one not in _FAULTY), _TEXTS)
# What is recorded where there is no system to ask, and is not of the time.
RECORDED: Final = Words(_STEADY, _OF_TASKS, {**_TEXTS, Look.NOW: ("execname", 'strjoin(probefunc, "!")', "self->s")})


class Expressions:
    """Draws expressions for an image with so many registers."""

    def __init__(self, draw: random.Random, registers: int, words: Words = ALL) -> None:
        self._draw, self._registers, self._words = draw, registers, words

    def atom(self, look: Look) -> str:
        """A number that looks no further than that, and mostly as far."""
        chosen = look if self._draw.random() < 0.75 else Look(self._draw.randrange(look + 1))
        match chosen:
            case Look.PROBE:
                return self._draw.choice(_OF_PROBE)
            case Look.REGISTERS:
                if self._draw.random() < 0.2:
                    return f"regs[{self._draw.randrange(min(self._registers, 16))}]"
                return f"arg{self._draw.choice((0, 0, 0, 1, 1, 2, 3, 4, 5, 7))}"
            case Look.LATER:
                return self._draw.choice(self._words.later)
            case _:
                return self._draw.choice(self._words.now)

    def number(self, look: Look, depth: int = 2) -> str:
        """A number."""
        draw = self._draw
        if depth == 0 or draw.random() < 0.4:
            return self.atom(look)
        match draw.randrange(8):
            case 0:
                return f"({self.number(look, depth - 1)} {draw.choice(('/', '%'))} {draw.choice((3, 8, 64))})"
            case 1:
                return f"({self.number(look, depth - 1)} {draw.choice(('<<', '>>'))} {draw.randrange(5)})"
            case 2:
                kind = draw.choice(("int8_t", "uint16_t", "int", "uint32_t", "int64_t"))
                return f"({kind})({self.number(look, depth - 1)})"
            case 3:
                then, otherwise = self.number(look, 0), self.number(look, 0)
                return f"(({self.number(look, depth - 1)}) > {draw.choice(_NUMBERS)} ? ({then}) : ({otherwise}))"
            case 4:
                return f"{draw.choice('~-!')}({self.atom(look)})"
            case 5:
                return f"({self.number(look, depth - 1)} {draw.choice(_BINARY)} {self.number(look, depth - 1)})"
            case _:
                return f"({self.number(look, depth - 1)} {draw.choice(_BINARY)} {draw.choice(_NUMBERS)})"

    def few(self, look: Look) -> str:
        """A number with few values, for a key."""
        return f"({self.number(look, 1)}) & {self._draw.choice((1, 3, 15, 255))}"

    def text(self, look: Look) -> str:
        """A string."""
        chosen = look if self._draw.random() < 0.6 else Look(self._draw.randrange(look + 1))
        return self._draw.choice(self._words.texts[chosen])

    def predicate(self, look: Look) -> str:
        """A predicate, which may be empty."""
        draw = self._draw
        if draw.random() < 0.35:
            return ""
        if look is Look.PROBE:
            return draw.choice(
                ("cpu == 0", "cpu != 1", 'probename == "entry"', "id & 1", "1", 'probefunc != "kmalloc"')
            )
        if look is Look.REGISTERS:
            return draw.choice((f"{self.number(look, 1)}", f"arg0 > {draw.choice(_NUMBERS)}", "arg1 & 1", "arg0 != 0"))
        if look is Look.LATER:
            known = ("self->t", "self->a", "!self->a", "g0 & 1", "timestamp > 300000", "g1 < 100", "arr[arg0]")
            return draw.choice((*known, self.number(look, 1), "self->a && arg0", "(timestamp & 16) == 0"))
        return draw.choice(
            ("caller", "stackdepth > 2", 'execname != "x"', "pid >= 0", self.number(look, 1), "arg0 / g0")
        )


def parameters(draw: random.Random, function: str, value: str) -> str:
    """What an aggregating function is called with; its constants follow from its own name alone in a program."""
    match function:
        case "count":
            return ""
        case "quantize":
            return value if draw.random() < 0.8 else f"{value}, {draw.choice((2, 3))}"
        case "lquantize":
            return f"{value}, -64, 4096, 64"
        case "llquantize":
            return f"{value}, 10, 0, 6, 20"
        case _:
            return value


def listed(words: Sequence[str]) -> str:
    """With commas."""
    return ", ".join(words)
