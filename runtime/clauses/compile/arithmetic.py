"""Operators as Python. The range that a value is known to have decides whether it must be wrapped to 64 bits.

DIF computes in 64-bit registers whatever the types of operands, and the result type gives only the sign. Python's
integers do not wrap, so each result gets bounds from those of its operands (interval arithmetic), and `fit` adds a mask
only where they may leave 64 bits: `cpu + 1` and most comparisons need none.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from kinst.runtime.clauses.arithmetic import divide_by_zero, quotient, remainder
from kinst.runtime.clauses.compile.code import (
    DEEP,
    HALF,
    SIGNED,
    UNSIGNED,
    WORD,
    Code,
    Generator,
    Scalar,
    constant,
    is_string,
    word_of,
)
from kinst.runtime.dlang import program
from kinst.targets.values import dataclass

COMPARISONS: Final = frozenset({"<", "<=", ">", ">=", "==", "!="})
_FOLD: Final[Mapping[str, Callable[[int, int], int]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": lambda left, right: left << (right & 63),
    ">>": lambda left, right: left >> (right & 63),
    "/": quotient,
    "%": remainder,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator with its signs. `result` is the range of the 64-bit result, whose sign is also that of the operands
    of / % >>; `is_signed` is the sign of a comparison."""

    operator: str
    result: Scalar
    is_signed: bool


def fit(generator: Generator, code: Code, to: Scalar) -> Code:
    """The value in the range of `to` that has the same low bits. The text is the cheapest for what is known of the
    value: none, a mask, or a test with the mask in the rare case."""
    if to.low <= code.low and code.high <= to.high:
        return code
    if isinstance(code.constant, int):
        return constant(to.wrapped(code.constant))
    mask = (1 << 8 * to.size) - 1
    if not to.is_signed:
        return Code(f"({code.text} & {mask})", 0, to.high, code.depth + 1)
    name, first = twice(generator, code)
    if code.low >= to.low:
        is_inside = f"{first} <= {to.high}"
    elif code.high <= to.high:
        is_inside = f"{first} >= {to.low}"
    else:
        is_inside = f"{to.low} <= {first} <= {to.high}"
    half = to.high + 1
    wrapped = f"({name} + {half} & {mask}) - {half}"
    if to.size == 8 and code.low >= to.low and code.high <= mask:  # an unsigned word as a signed one
        wrapped = f"{name} - {WORD}"
    return Code(f"({name} if {is_inside} else {wrapped})", to.low, to.high, code.depth + 1)


def twice(generator: Generator, code: Code) -> tuple[str, str]:
    """For a value that is used twice: its name, and the text that assigns it, which must be evaluated first."""
    if code.text.isidentifier():
        return code.text, code.text
    name = generator.temporary()
    return name, f"({name} := {code.text})"


def truth(code: Code) -> Code:
    """The result of `test` as the number 0 or 1."""
    if isinstance(code.constant, int):
        return constant(int(code.constant != 0))
    return Code(f"(1 if {code.text} else 0)", 0, 1, code.depth + 1)


# -- binary operators -------------------------------------------------------------------------------------------------


def binary(generator: Generator, node: program.Binary) -> Code:
    """Any binary operator. a + b + c + ... may be longer than Python's recursion limit, so left operands are visited in
    a loop, and a deep result is assigned to a variable in an outlined function."""
    if node.operator in COMPARISONS:
        return truth(comparison(generator, node))
    spine = [node]
    while isinstance(spine[-1].left, program.Binary) and spine[-1].left.operator not in COMPARISONS:
        spine.append(spine[-1].left)
    lines: list[str] = []
    code = generator.value(spine[-1].left)
    for part in reversed(spine):
        if code.depth > DEEP:
            name = generator.temporary()
            lines.append(f"{name} = {code.text}")
            code = Code(name, code.low, code.high, 0)
        operation = Operation(part.operator, word_of(part.type), part.is_signed)
        code = combine(generator, operation, code, generator.value(part.right))
    if not lines:
        return code
    outlined = generator.outline([*lines, f"return {code.text}"])
    return Code(outlined.text, code.low, code.high)


def comparison(generator: Generator, node: program.Binary) -> Code:
    """A comparison, as a test: something that Python takes as true or false. Strings compare as by strncmp(), which for
    bytes without a NUL is Python's order."""
    if is_string(node.left.type) or is_string(node.right.type):
        left, right = _compared(generator.text(node.left)), _compared(generator.text(node.right))
        return Code(f"({left.text} {node.operator} {right.text})", 0, 1, max(left.depth, right.depth) + 1)
    operation = Operation(node.operator, SIGNED, node.is_signed)
    return combine(generator, operation, generator.value(node.left), generator.value(node.right))


def _compared(code: Code) -> Code:
    """A string as it is compared: DIF_OP_SCMP takes NULL for the empty string, where any other use of it is a fault."""
    return replace(code, text=f"({code.text} or b'')", depth=code.depth + 1) if code.is_nullable else code


def combine(generator: Generator, operation: Operation, left: Code, right: Code) -> Code:
    """`left` operator `right`; a comparison gives a test."""
    symbol = operation.operator
    if symbol in COMPARISONS:
        domain = SIGNED if operation.is_signed else UNSIGNED
        left, right = fit(generator, left, domain), fit(generator, right, domain)
    elif symbol not in "+-*":
        left = fit(generator, left, operation.result)
        right = right if symbol in ("<<", ">>") else fit(generator, right, operation.result)
    # A division by a constant 0 is not folded: D_DIV_ZERO is the checker's; what is left here faults when it runs.
    if isinstance(left.constant, int) and isinstance(right.constant, int) and (right.constant or symbol not in "/%"):
        return constant(operation.result.wrapped(_FOLD[symbol](left.constant, right.constant)))
    depth = max(left.depth, right.depth) + 1
    if symbol in COMPARISONS:
        return Code(f"({left.text} {symbol} {right.text})", 0, 1, depth)
    return fit(generator, _EMIT[symbol](generator, operation, left, right), operation.result)


def _sum(_generator: Generator, operation: Operation, left: Code, right: Code) -> Code:
    depth = max(left.depth, right.depth) + 1
    text = f"({left.text} {operation.operator} {right.text})"
    match operation.operator:
        case "+":
            return Code(text, left.low + right.low, left.high + right.high, depth)
        case "-":
            return Code(text, left.low - right.high, left.high - right.low, depth)
        case _:
            corners = [one * other for one in (left.low, left.high) for other in (right.low, right.high)]
            return Code(text, min(corners), max(corners), depth)


def _bitwise(_generator: Generator, operation: Operation, left: Code, right: Code) -> Code:
    depth = max(left.depth, right.depth) + 1
    text = f"({left.text} {operation.operator} {right.text})"
    domain = operation.result
    # Python's integers are two's complement of unlimited width: & | ^ of two wrapped values need no wrapping.
    if left.low >= 0 and right.low >= 0:
        if operation.operator == "&":
            return Code(text, 0, min(left.high, right.high), depth)
        return Code(text, 0, (1 << max(left.high.bit_length(), right.high.bit_length())) - 1, depth)
    if operation.operator == "&" and max(left.low, right.low) >= 0:
        return Code(text, 0, left.high if left.low >= 0 else right.high, depth)
    return Code(text, domain.low, domain.high, depth)


def _shift(_generator: Generator, operation: Operation, left: Code, right: Code) -> Code:
    # The kernel shifts with the CPU's 64-bit instruction, which uses 6 bits of the count on all three machines. Python
    # would raise an error for a negative count, and allocate gigabytes for a large one.
    count = right.text if right.low >= 0 and right.high < 64 else f"({right.text} & 63)"
    depth = max(left.depth, right.depth + 1) + 1
    least, most = 0, 63
    if isinstance(right.constant, int):
        least = most = right.constant & 63
        count = repr(most)
    if operation.operator == "<<":
        bounds = [value << by for value in (left.low, left.high) for by in (least, most)]
    else:
        bounds = [value >> by for value in (left.low, left.high) for by in (least, most)]
    return Code(f"({left.text} {operation.operator} {count})", min(bounds), max(bounds), depth)


def _divide(generator: Generator, operation: Operation, left: Code, right: Code) -> Code:
    """/ and %. C rounds toward zero and Python down: they agree if nothing is negative, which the bounds often
    prove."""
    depth = max(left.depth, right.depth + 1) + 1
    symbol, python = operation.operator, "//" if operation.operator == "/" else "%"
    low, high = -HALF, max(left.high, HALF)  # HALF is INT64_MIN / -1
    if left.low < 0 or right.low < 0:
        if symbol == "%":
            return Code(f"{generator.bind('remainder', remainder)}({left.text}, {right.text})", -HALF, HALF - 1, depth)
        if right.constant is not None and right.low > 0:
            name, first = twice(generator, left)
            text = f"({name} // {right.text} if {first} >= 0 else -(-{name} // {right.text}))"
            return Code(text, min(left.low, 0), max(left.high, 0), depth + 1)
        return Code(f"{generator.bind('quotient', quotient)}({left.text}, {right.text})", low, high, depth)
    divisor = right.text
    if right.low == 0:  # Python's ZeroDivisionError would not be a Fault
        divisor = f"({right.text} or {generator.bind('divide_by_zero', divide_by_zero)}())"
    high = left.high if symbol == "/" else min(left.high, max(right.high - 1, 0))
    return Code(f"({left.text} {python} {divisor})", 0, high, depth)


_EMIT: Final = {
    "+": _sum,
    "-": _sum,
    "*": _sum,
    "&": _bitwise,
    "|": _bitwise,
    "^": _bitwise,
    "<<": _shift,
    ">>": _shift,
    "/": _divide,
    "%": _divide,
}

# -- others -----------------------------------------------------------------------------------------------------------


def unary(generator: Generator, node: program.Unary) -> Code:
    """`-`, `~` and `!`."""
    if node.operator == "!":
        return truth(negation(generator, node))
    code = generator.value(node.operand)
    if node.operator == "-":
        found = Code(f"(-{code.text})", -code.high, -code.low, code.depth + 1)
    else:
        found = Code(f"(~{code.text})", ~code.high, ~code.low, code.depth + 1)
    if isinstance(code.constant, int):
        found = constant(found.low)
    return fit(generator, found, word_of(node.type))


def negation(generator: Generator, node: program.Unary) -> Code:
    """`!`, as a test."""
    code = generator.test(node.operand)
    if isinstance(code.constant, int):
        return constant(int(code.constant == 0))
    return Code(f"(not {code.text})", 0, 1, code.depth + 1)


def logical(generator: Generator, node: program.Logical) -> Code:
    """`&&`, `||` and `^^`, as a test. A chain of the same operator becomes one flat expression."""
    operands: list[program.Expression] = []
    rest: program.Expression = node
    while isinstance(rest, program.Logical) and rest.operator == node.operator:
        operands.append(rest.right)
        rest = rest.left
    operands.append(rest)
    tests = [generator.test(operand) for operand in reversed(operands)]
    if node.operator == "^^":
        return _exclusive(tests)
    depth = max(test.depth for test in tests) + 1
    joined = {"&&": " and ", "||": " or "}[node.operator].join(test.text for test in tests)
    if all(isinstance(test.constant, int) for test in tests):
        every = all if node.operator == "&&" else any
        return constant(int(every(test.constant for test in tests)))
    return Code(f"({joined})", 0, 1, depth)


def _exclusive(tests: list[Code]) -> Code:
    """`^^`: whether an odd number of the tests is true."""
    depth = max(test.depth for test in tests) + 2
    return Code("(" + " ^ ".join(f"(not {test.text})" for test in tests) + f" ^ {len(tests) % 2 == 1})", 0, 1, depth)
