"""Random integer expressions: compiled clauses must compute what gcc's code computes, in 64 bits.

One C file holds all of them. Statement expressions put the order of evaluation beyond doubt, -fwrapv makes overflow
wrap as D's does, and a division by zero leaves by longjmp.
"""

import random
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from kinst.runtime.clauses.compile.expressions import Expressions
from kinst.runtime.dlang import program
from kinst.runtime.dlang.program import Scope
from kinst.runtime.dlang.types.types import (
    CHAR,
    INT,
    INT8,
    INT16,
    INT32,
    INT64,
    LONG,
    UCHAR,
    UINT,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    ULONG,
    DType,
)
from kinst.runtime.trap.faults import Fault, FaultKind
from tests.gated import long_after_first
from tests.runtime.clauses.compile.running import GUEST, SPAN, Bench, argument, number, read, variable

TYPES: dict[str, tuple[DType, int, bool]] = {
    "int8_t": (INT8, 8, True),
    "int16_t": (INT16, 16, True),
    "int32_t": (INT32, 32, True),
    "int64_t": (INT64, 64, True),
    "uint8_t": (UINT8, 8, False),
    "uint16_t": (UINT16, 16, False),
    "uint32_t": (UINT32, 32, False),
    "uint64_t": (UINT64, 64, False),
}
NAMES = list(TYPES)
EXPRESSIONS, DEPTH = 1200, 6
ARGUMENTS = [(0, 1, -1), (7, -3, 1 << 62), (-(1 << 63), -1, 64), (12345, 1 << 31, 0xFFFF_FFFF)]
INTERESTING = [0, 1, 2, 3, 7, 8, 63, 64, 100, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF, (1 << 31) - 1, 1 << 31]
INTERESTING += [(1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 0x1234_5678_9ABC_DEF0]

HEAD = """
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
static jmp_buf fault;
static int64_t arguments[3];
static unsigned char memory[64];
static int64_t sdiv(int64_t a, int64_t b) { if (!b) longjmp(fault, 1); return b == -1 ? -a : a / b; }
static int64_t srem(int64_t a, int64_t b) { if (!b) longjmp(fault, 1); return b == -1 ? 0 : a % b; }
static uint64_t udiv(uint64_t a, uint64_t b) { if (!b) longjmp(fault, 1); return a / b; }
static uint64_t urem(uint64_t a, uint64_t b) { if (!b) longjmp(fault, 1); return a % b; }
#define LOAD(type, at) ({ type loaded; memcpy(&loaded, memory + at, sizeof(loaded)); loaded; })
"""


@dataclass(frozen=True)
class Both:
    """An expression for us and for gcc; `c` has the 64-bit type of its sign."""

    node: program.Expression
    c: str
    is_signed: bool


def word(is_signed: bool) -> str:  # noqa: FBT001
    return "int64_t" if is_signed else "uint64_t"


class Maker:
    """Makes random expressions."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.memory = self.random.randbytes(64)

    def expression(self, depth: int) -> Both:
        if depth == 0 or self.random.random() < 0.1:
            return self.random.choice([self.constant, self.argument, self.load, self.field, self.variable])()
        kinds: list[Callable[[int], Both]] = [self.binary] * 6
        kinds += [self.unary, self.cast, self.compare, self.logical, self.conditional, self.assign, self.update]
        return self.random.choice(kinds)(depth - 1)

    def type(self) -> tuple[str, DType, int, bool]:
        name = self.random.choice(NAMES)
        return (name, *TYPES[name])

    def constant(self) -> Both:
        name, kind, bits, is_signed = self.type()
        value = self.random.choice(INTERESTING) & (1 << bits) - 1
        node = number(value - (1 << bits) if is_signed and value >> bits - 1 else value, kind)
        return Both(node, f"(({word(is_signed)})({name}){value:#x}ull)", is_signed)

    def argument(self) -> Both:
        index = self.random.randrange(3)
        return Both(argument(index), f"arguments[{index}]", is_signed=True)

    def load(self) -> Both:
        name, kind, bits, is_signed = self.type()
        at = self.random.randrange(64 - bits // 8)
        return Both(
            program.Load(kind, number(GUEST + at, ULONG)), f"(({word(is_signed)})LOAD({name}, {at}))", is_signed
        )

    def field(self) -> Both:
        _, kind, bits, is_signed = self.type()
        at, width = self.random.randrange(64 - bits // 8), self.random.randrange(1, bits + 1)
        shift = self.random.randrange(bits - width + 1)
        unit = f"(uint64_t)LOAD(uint{bits}_t, {at}) << {64 - shift - width}"
        text = f"(({word(is_signed)})({unit}) >> {64 - width})"
        return Both(program.Load(kind, number(GUEST + at, ULONG), (shift, width)), text, is_signed)

    def place(self) -> tuple[program.Read, str, bool]:
        """A variable: 64 bits of its type's sign, however narrow the type is."""
        name, kind, _, is_signed = self.type()
        scope = self.random.choice(list(Scope))
        return read(variable(scope, name, kind)), f"{scope.name}_{name}", is_signed

    def variable(self) -> Both:
        return Both(*self.place())

    def binary(self, depth: int) -> Both:
        left, right = self.expression(depth), self.expression(depth)
        symbol = self.random.choice(["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"])
        is_signed = self.random.random() < 0.5
        node = program.Binary(LONG if is_signed else ULONG, symbol, left.node, right.node, is_signed, SPAN)
        return Both(node, self.computed(symbol, left.c, right.c, is_signed=is_signed), is_signed)

    @staticmethod
    def computed(symbol: str, left: str, right: str, *, is_signed: bool) -> str:
        kind = word(is_signed)
        operands = f"{kind} l = {left}; {kind} r = {right}; "
        if symbol in "/%":
            return f"({{ {operands} {'s' if is_signed else 'u'}{'div' if symbol == '/' else 'rem'}(l, r); }})"
        if symbol in ("<<", ">>"):
            return f"({{ {operands} ({kind})(l {symbol} (r & 63)); }})"
        return f"({{ {operands} ({kind})(l {symbol} r); }})"

    def compare(self, depth: int) -> Both:
        left, right = self.expression(depth), self.expression(depth)
        symbol = self.random.choice(["<", "<=", ">", ">=", "==", "!="])
        is_signed = self.random.random() < 0.5
        kind = word(is_signed)
        text = f"({{ {kind} l = {left.c}; {kind} r = {right.c}; (int64_t)(l {symbol} r); }})"
        node = program.Binary(INT, symbol, left.node, right.node, is_signed, SPAN)
        return Both(node, text, is_signed=True)

    def unary(self, depth: int) -> Both:
        operand = self.expression(depth)
        symbol = self.random.choice("-~!")
        is_signed = operand.is_signed or symbol == "!"
        node = program.Unary(INT if symbol == "!" else LONG if is_signed else ULONG, symbol, operand.node)
        return Both(node, f"(({word(is_signed)})({symbol}{operand.c}))", is_signed)

    def cast(self, depth: int) -> Both:
        operand = self.expression(depth)
        name, kind, _, is_signed = self.type()
        return Both(program.Convert(kind, operand.node), f"(({word(is_signed)})({name}){operand.c})", is_signed)

    def logical(self, depth: int) -> Both:
        left, right = self.expression(depth), self.expression(depth)
        symbol = self.random.choice(["&&", "||", "^^"])
        text = f"({left.c} {symbol} {right.c})"
        if symbol == "^^":
            text = f"({{ int l = {left.c} != 0; int r = {right.c} != 0; l ^ r; }})"
        return Both(program.Logical(INT, symbol, left.node, right.node), f"((int64_t){text})", is_signed=True)

    def conditional(self, depth: int) -> Both:
        test, then, otherwise = (self.expression(depth) for _ in range(3))
        is_signed = then.is_signed and otherwise.is_signed
        kind = word(is_signed)
        node = program.Conditional(LONG if is_signed else ULONG, test.node, then.node, otherwise.node)
        return Both(node, f"({test.c} ? ({kind}){then.c} : ({kind}){otherwise.c})", is_signed)

    def assign(self, depth: int) -> Both:
        value = self.expression(depth)
        target, c, is_signed = self.place()
        node = program.Assign(target.type, target, value.node)
        return Both(node, f"({c} = ({word(is_signed)}){value.c})", is_signed)

    def update(self, depth: int) -> Both:
        value = self.expression(depth)
        target, c, is_signed = self.place()
        symbol = self.random.choice(["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"])
        gives_old, computes_signed = self.random.random() < 0.5, self.random.random() < 0.5
        node = program.Update(target.type, target, symbol, value.node, gives_old, computes_signed, SPAN)
        new = self.computed(symbol, "old", value.c, is_signed=computes_signed)
        kind = word(is_signed)
        result = f"({{ {kind} old = {c}; {kind} new = ({kind}){new}; {c} = new; {'old' if gives_old else 'new'}; }})"
        return Both(node, result, is_signed)


def source(maker: Maker, expressions: list[Both]) -> str:
    """The C program: a line for each expression and arguments: the value, or F."""
    lines = [HEAD]
    lines += [f"static {word(TYPES[name][2])} {scope.name}_{name};" for scope in Scope for name in NAMES]
    lines.append("static void clear(void) {")
    lines += [f"{scope.name}_{name} = 0;" for scope in Scope for name in NAMES]
    lines.append("}")
    for index, both in enumerate(expressions):
        lines.append(f"static {word(both.is_signed)} e{index}(void) {{ return {both.c}; }}")
    calls = ", ".join(f"(uint64_t (*)(void))e{index}" for index in range(len(expressions)))
    lines.append(f"static uint64_t (*const all[])(void) = {{ {calls} }};")
    rows = ", ".join("{" + ", ".join(f"(int64_t){value:#x}ull" for value in unsigned) + "}" for unsigned in _unsigned())
    lines += [
        f"int main(void) {{ static const int64_t rows[][3] = {{ {rows} }};",
        f'memcpy(memory, "{"".join(f"{chr(92)}x{byte:02x}" for byte in maker.memory)}", 64);',
        f"for (int i = 0; i < {len(expressions)}; i++) for (int j = 0; j < {len(ARGUMENTS)}; j++) {{",
        "memcpy(arguments, rows[j], sizeof(arguments)); clear();",
        'if (setjmp(fault)) puts("F"); else printf("%llu\\n", (unsigned long long)all[i]()); } }',
    ]
    return "\n".join(lines)


def _unsigned() -> list[list[int]]:
    return [[value & (1 << 64) - 1 for value in row] for row in ARGUMENTS]


def computed_by_gcc(text: str, folder: Path) -> list[str]:
    (folder / "expressions.c").write_text(text)
    command = ["gcc", "-O0", "-w", "-fwrapv", "-o", str(folder / "expressions"), str(folder / "expressions.c")]
    subprocess.run(command, check=True)
    return subprocess.run([folder / "expressions"], check=True, capture_output=True, text=True).stdout.split()


def computed_by_us(maker: Maker, expressions: list[Both]) -> list[str]:
    found = []
    for both in expressions:
        bench = Bench()
        bench.environment.ram.data[:64] = maker.memory
        known = Expressions(bench.state, bench.environment, 0).value(both.node)
        fire = bench.compile(program.Trace(program.Convert(LONG if both.is_signed else ULONG, both.node)))
        for row in ARGUMENTS:
            bench.arguments = row
            value = fired(bench, fire)
            found.append(value if value == "F" else str(int(value) & (1 << 64) - 1))
            assert value == "F" or known.low <= int(value) <= known.high, both
    return found


def fired(bench: Bench, fire: Callable[[], None]) -> str:
    """One firing with fresh variables."""
    variables = bench.state.variables
    for scope in Scope:
        for name in NAMES:
            of = variable(scope, name, TYPES[name][0])
            if scope is Scope.GLOBAL:
                variables.cell(of).value = 0
            elif scope is Scope.CLAUSE:
                variables.frames[0][variables.slot(of)] = 0
            else:
                variables.dynamic(of).cells.clear()
    fire()
    if bench.environment.faults:
        assert bench.environment.faults.pop()[2].kind is FaultKind.DIVZERO
        return "F"
    value = bench.records()[0][4][0]
    assert isinstance(value, int) and not isinstance(value, bool)
    return str(value)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is the judge")
@pytest.mark.parametrize("seed", long_after_first([1, 2]))
def test_expressions_have_the_values_that_gcc_gives_them(seed: int, tmp_path: Path) -> None:
    maker = Maker(seed)
    expressions = [maker.expression(DEPTH if index % 3 else 2) for index in range(EXPRESSIONS // 4)]
    theirs = computed_by_gcc(source(maker, expressions), tmp_path)
    ours = computed_by_us(maker, expressions)
    assert len(ours) == len(theirs) == len(expressions) * len(ARGUMENTS)
    differing = [index for index, (one, other) in enumerate(zip(ours, theirs, strict=True)) if one != other]
    where = [(ours[i], theirs[i], ARGUMENTS[i % len(ARGUMENTS)], expressions[i // len(ARGUMENTS)]) for i in differing]
    assert not where[:1], f"{len(differing)} differ"
    assert ours.count("F") < len(ours) // 2


@pytest.mark.parametrize("kind", [CHAR, UCHAR, INT, UINT, LONG, ULONG])
def test_a_narrow_types_sum_is_not_truncated_between_operators(kind: DType) -> None:
    """Classic libdtrace computes in 64-bit registers."""
    large = program.Binary(kind, "+", number(100, kind), argument(0), is_signed=True, span=SPAN)
    halved = program.Binary(kind, "/", large, number(2, kind), is_signed=True, span=SPAN)
    bench = Bench()
    bench.arguments = (1 << 40,)
    assert bench.value(program.Convert(LONG, halved)) == (1 << 39) + 50


def test_the_least_number_divided_by_minus_1_wraps() -> None:
    bench = Bench()
    bench.arguments = (-(1 << 63), -1)
    for divisor in (argument(1), number(-1)):
        assert bench.value(program.Binary(LONG, "/", argument(0), divisor, is_signed=True, span=SPAN)) == -(1 << 63)
        assert bench.value(program.Binary(LONG, "%", argument(0), divisor, is_signed=True, span=SPAN)) == 0


@pytest.mark.parametrize("symbol", ["/", "%"])
@pytest.mark.parametrize("is_signed", [True, False])
def test_division_by_zero_is_a_fault(symbol: str, is_signed: bool) -> None:  # noqa: FBT001
    for divisor in (number(0), read(variable(Scope.GLOBAL, "zero")), argument(9)):
        node = program.Binary(LONG if is_signed else ULONG, symbol, argument(0), divisor, is_signed, SPAN)
        with pytest.raises(Fault) as caught:
            Bench().value(node)
        assert caught.value.kind is FaultKind.DIVZERO
