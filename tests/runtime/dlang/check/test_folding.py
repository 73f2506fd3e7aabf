"""What is computed of constants while a program is read is what a variable of the same type gives when it runs."""

from itertools import product

import pytest

from tests.runtime.clauses.compile.running import Script

TYPES = ("int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t")
VALUES = (
    0,
    1,
    0x7F,
    0x80,
    0xF0,
    0xFF,
    0x1F0,
    0x7FFF,
    0x8000,
    0xFFFF,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**63 - 1,
    2**64 - 1,
)
WIDE = ("int32_t", "int64_t", "uint64_t")  # where D and C agree on what an operator computes
OPERATORS = ("+", "-", "/", "%", "&", "|", "^", ">>", "<", "<=", "==", "!=")


@pytest.mark.parametrize("source", TYPES)
def test_casts(source: str) -> None:
    pairs = list(product(TYPES, VALUES))
    statements = "".join(
        f"this->v = {value:#x}; trace(({to})({source}){value:#x}); trace(({to})this->v);" for to, value in pairs
    )
    (values,) = Script(f"this {source} v; BEGIN {{ {statements} }}").fire()
    different = [pair for number, pair in enumerate(pairs) if values[2 * number] != values[2 * number + 1]]
    assert not different


@pytest.mark.parametrize("kind", WIDE)
def test_operators(kind: str) -> None:
    """A result is compared where a 64-bit value is wanted, since an int may be wider than itself."""
    parts = [
        (left, symbol, right) for left, symbol, right in product(VALUES, OPERATORS, VALUES) if right or symbol != "/"
    ]
    parts = [part for part in parts[:: len(parts) // 400] if part[2] or part[1] != "%"]
    statements = "".join(
        f"this->a = {left:#x}; this->b = {right:#x}; trace(({kind}){left:#x} {symbol} ({kind}){right:#x});"
        f" trace(this->a {symbol} this->b);"
        for left, symbol, right in parts
    )
    (values,) = Script(f"this {kind} a; this {kind} b; BEGIN {{ {statements} }}").fire()
    different = [part for number, part in enumerate(parts) if values[2 * number] != values[2 * number + 1]]
    assert not different
