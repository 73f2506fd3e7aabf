"""The arguments of lquantize() and llquantize() besides the value: constants that shape the distribution."""

from collections.abc import Sequence
from typing import Final

from kinst.runtime.dlang import program
from kinst.runtime.dlang.check.stacks import positive
from kinst.runtime.dlang.program import AggregatingFunction
from kinst.runtime.dlang.syntax.errors import DError, Span

_SHORT: Final = (1 << 16) - 1
_INT: Final = 1 << 31
_LLQUANTIZE: Final = (("FACTOR", "factor"), ("LOW", "low magnitude"), ("HIGH", "high magnitude"), ("NSTEP", "steps"))
_SHOWN: Final = {AggregatingFunction.LQUANTIZE: "lquantize", AggregatingFunction.LLQUANTIZE: "llquantize"}


def linear(values: Sequence[program.Expression], span: Span) -> tuple[int, int, int]:
    """Base, limit and step of lquantize(value, base, limit[, step]). The limit is reduced to the end of the last whole
    step: the kernel gets base, step and the number of levels in one 64-bit argument. Raises DError: D_LQUANT_*."""
    base, limit = (_bound(value, number, span) for number, value in enumerate(values[1:3], 1))
    if limit < base:
        raise _linear_error("MISMATCH", "base (argument #1) must be less than limit (argument #2)", span)
    step = _step(values[3], span) if len(values) > 3 else 1
    levels = (limit - base) // step
    if levels == 0:
        raise _linear_error("STEPLARGE", "step (argument #3) too large: at least one level is needed", span)
    if levels > _SHORT:
        raise _linear_error("STEPSMALL", "step (argument #3) too small: levels must be a 16-bit quantity", span)
    return base, base + levels * step, step


def _linear_error(what: str, text: str, span: Span) -> DError:
    return DError(f"D_LQUANT_{what}", f"lquantize( ) {text}", span)


def _bound(value: program.Expression, number: int, span: Span) -> int:
    name = ("BASE", "LIM")[number - 1]
    if not isinstance(value, program.Integer):
        raise _linear_error(f"{name}TYPE", f"argument #{number} must be an integer constant", span)
    if not -_INT <= value.value < _INT:
        raise _linear_error(f"{name}VAL", f"argument #{number} must be a 32-bit quantity", span)
    return value.value


def _step(value: program.Expression, span: Span) -> int:
    step = positive(value)
    if step is None:
        raise _linear_error("STEPTYPE", "argument #3 must be a non-zero positive integer constant", span)
    if step > _SHORT:
        raise _linear_error("STEPVAL", "argument #3 must be a 16-bit quantity", span)
    return step


def log_linear(values: Sequence[program.Expression], span: Span) -> tuple[int, int, int, int]:
    """Factor, low and high magnitude and steps of llquantize(value, factor, low, high, steps). Raises DError:
    D_LLQUANT_*."""
    factor, low, high, steps = (_short(value, number, span) for number, value in enumerate(values[1:5], 1))
    if factor < 2:
        raise _log_error("FACTORSMALL", "factor (argument #1) must be two or more", span)
    if low >= high:
        text = "high magnitude (argument #3) must be greater than low magnitude (argument #2)"
        raise _log_error("MAGRANGE", text, span)
    if steps < factor:
        text = "factor (argument #1) must be less than or equal to the steps per magnitude (argument #4)"
        raise _log_error("FACTORNSTEPS", text, span)
    if not _is_even(factor, steps):
        text = "steps per magnitude (argument #4) must be a multiple of factor (argument #1) and divide a power of it"
        raise _log_error("FACTOREVEN", text, span)
    if high >= 63 or factor ** (high + 1) >= 1 << 64:  # the end of its last bucket
        raise _log_error("MAGTOOBIG", f"factor ({factor}) raised to power of ({high} + 1) overflows 64 bits", span)
    return factor, low, high, steps


def _is_even(factor: int, steps: int) -> bool:
    power = factor
    while power < steps:
        power *= factor
    return steps % factor == 0 and power % steps == 0


def _log_error(what: str, text: str, span: Span) -> DError:
    return DError(f"D_LLQUANT_{what}", f"llquantize( ) {text}", span)


def _short(value: program.Expression, number: int, span: Span) -> int:
    tag, name = _LLQUANTIZE[number - 1]
    if not isinstance(value, program.Integer):
        raise _log_error(f"{tag}TYPE", f"argument #{number} ({name}) must be an integer constant", span)
    if not 0 <= value.value <= _SHORT:
        raise _log_error(f"{tag}VAL", f"argument #{number} ({name}) must be an unsigned 16-bit quantity", span)
    return value.value


def check_same(known: program.Aggregation, parameters: tuple[int, ...], span: Span) -> None:
    """Refuse a use of an aggregation with different constants than before. Raises DError: D_LQUANT_MATCH*,
    D_LLQUANT_*MATCH."""
    is_linear = known.function is AggregatingFunction.LQUANTIZE
    tags = _LINEAR_MATCHES if is_linear else _LOG_MATCHES
    order = (0, 1, 2) if is_linear else (0, 1, 2, 3)
    for place in order[: len(parameters)]:
        if known.parameters[place] != parameters[place]:
            tag, what = tags[place]
            text = (
                f"{_SHOWN[known.function]}( ) {what} (argument #{place + 1}) doesn't match previous declaration: "
                f"expected {known.parameters[place]}, found {parameters[place]}"
            )
            raise DError(tag, text, span)


_LINEAR_MATCHES: Final = (
    ("D_LQUANT_MATCHBASE", "base"),
    ("D_LQUANT_MATCHLIM", "limit"),
    ("D_LQUANT_MATCHSTEP", "step"),
)
_LOG_MATCHES: Final = (
    ("D_LLQUANT_FACTORMATCH", "factor"),
    ("D_LLQUANT_LOWMATCH", "low magnitude"),
    ("D_LLQUANT_HIGHMATCH", "high magnitude"),
    ("D_LLQUANT_NSTEPMATCH", "steps per magnitude"),
)
