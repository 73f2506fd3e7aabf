"""Floating-point numbers of C in memory -> Python's, and as gdb shows them.

A `long double` is x87's format on amd64 (80 bits in 16 bytes), and IEEE 754's binary128 on arm64 and riscv64.
"""

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final

from kinst.targets.c_types import Float
from kinst.targets.values import dataclass

_LONG: Final = (10, 12, 16)  # bytes of a long double: x87's format is in 12 or 16 of them
_DIGITS_A_BIT: Final = 0.30102999566398119521  # log10(2)


@dataclass(frozen=True, slots=True)
class Format:
    """A format: fields from the most significant bit on are sign, exponent, mantissa."""

    exponent: int  # bits
    mantissa: int  # bits that are stored
    is_explicit: bool = False  # whether the highest bit of the mantissa is stored, as in x87's

    @property
    def precision(self) -> int:
        """Bits of a mantissa."""
        return self.mantissa + (not self.is_explicit)

    @property
    def digits(self) -> int:
        """Decimal digits that tell any two numbers apart."""
        return int(2 + self.precision * _DIGITS_A_BIT)


_FORMATS: Final = {2: Format(5, 10), 4: Format(8, 23), 8: Format(11, 52)}
_BRAIN: Final = Format(8, 7)
_X87: Final = Format(15, 64, is_explicit=True)
_QUAD: Final = Format(15, 112)
_COMPLEX: Final = ("complex", "_Complex")


def is_complex(kind: Float) -> bool:
    """Whether it is a pair of numbers."""
    return any(word in kind.name.split() for word in _COMPLEX)


def format_of(kind: Float, *, is_x87: bool) -> Format | None:
    """The format of a type; None: it is not known, as of decimal ones. `is_x87`: what the machine's long double is."""
    if "Decimal" in kind.name or "decimal" in kind.name or is_complex(kind):
        return None
    if "bf16" in kind.name:
        return _BRAIN
    if kind.size in _LONG:
        return _X87 if is_x87 and "128" not in kind.name else _QUAD
    return _FORMATS.get(kind.size)


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a format: what is in its bits, of any precision."""

    format: Format
    is_negative: bool
    exponent: int  # as stored
    mantissa: int  # as stored

    @property
    def exact(self) -> Fraction | None:
        """Its value, without a sign where it is 0; None: it is infinite, or no number."""
        form, bias = self.format, (1 << self.format.exponent - 1) - 1
        if self.exponent == (1 << form.exponent) - 1:
            return None
        if not form.is_explicit and self.exponent:
            mantissa, exponent = self.mantissa | 1 << form.mantissa, self.exponent
        else:
            mantissa, exponent = self.mantissa, max(self.exponent, 1)
        power = exponent - bias - form.precision + 1
        value = Fraction(mantissa) * Fraction(2) ** power
        return -value if self.is_negative else value

    @property
    def fraction(self) -> int:
        """The mantissa without the bit that says that it is not denormal: of no number, what kind it is."""
        return self.mantissa & (1 << self.format.precision - 1) - 1

    def value(self) -> float:
        """The nearest of Python's numbers: of a long double's, some bits are lost."""
        exact = self.exact
        if exact is None:
            return math.nan if self.fraction else -math.inf if self.is_negative else math.inf
        try:
            found = float(exact)
        except OverflowError:
            found = math.inf
        return math.copysign(found, -1.0 if self.is_negative else 1.0)

    def text(self) -> str:
        """As gdb's print has it: %g with as many digits as tell all numbers apart."""
        exact, sign = self.exact, "-" if self.is_negative else ""
        if exact is None:
            return f"{sign}nan({self._nan():#x})" if self.fraction else f"{sign}inf"
        if not exact:
            return f"{sign}0"
        rounded = _rounded(abs(exact), self.format.digits)
        return sign + _general(rounded, self.format.digits)

    def _nan(self) -> int:
        return self.mantissa


def number_of(data: bytes, form: Format) -> Number:
    """The number in bytes, of which a long double of x87's has more than it uses."""
    bits = int.from_bytes(data, "little")
    mantissa = bits & (1 << form.mantissa) - 1
    exponent = bits >> form.mantissa & (1 << form.exponent) - 1
    return Number(form, bool(bits >> form.mantissa + form.exponent & 1), exponent, mantissa)


def _rounded(value: Fraction, digits: int) -> Decimal:
    context = Context(prec=digits, Emax=99999, Emin=-99999)
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def _general(value: Decimal, digits: int) -> str:
    """%g of C, without trailing zeros."""
    exponent = value.adjusted()
    text = "".join(map(str, value.as_tuple().digits)).rstrip("0") or "0"
    if -5 < exponent < digits:
        if exponent < 0:
            return f"0.{'0' * (-exponent - 1)}{text}"
        whole = text.ljust(exponent + 1, "0")
        return f"{whole[: exponent + 1]}.{whole[exponent + 1 :]}".rstrip(".")
    tail = f".{text[1:]}" if len(text) > 1 else ""
    return f"{text[0]}{tail}e{'-' if exponent < 0 else '+'}{abs(exponent):02}"
