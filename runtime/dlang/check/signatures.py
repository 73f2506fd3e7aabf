"""The prototypes of actions and aggregating functions."""

from typing import Final

from kinst.runtime.dlang.check.prototypes import TEXT, Prototype
from kinst.runtime.dlang.program import AggregatingFunction
from kinst.runtime.dlang.types.types import INT, INT32, SIZE, STACK, SYMBOL, UINTPTR

_ANYTHING: Final = Prototype(is_variadic=True)  # the action checks the number itself
_STACK: Final = Prototype((), STACK, is_variadic=True)
_SYMBOL: Final = Prototype((UINTPTR,), SYMBOL)
_NUMBER: Final = Prototype((INT,))
_NOTHING: Final = Prototype()
_ONE: Final = Prototype((None,))
_FORMAT: Final = Prototype((None,), is_variadic=True)

ACTIONS: Final[dict[str, Prototype]] = {
    "breakpoint": _NOTHING,
    "chill": _NUMBER,
    "clear": _ANYTHING,
    "commit": _NUMBER,
    "denormalize": _ANYTHING,
    "discard": _NUMBER,
    "exit": _NUMBER,
    "freopen": _FORMAT,
    "ftruncate": _NOTHING,
    "func": _SYMBOL,
    "jstack": _STACK,
    "mod": _SYMBOL,
    "normalize": _ANYTHING,
    "override": _NUMBER,
    "panic": _NOTHING,
    "print": _ONE,
    "printa": _FORMAT,
    "printf": _FORMAT,
    "printm": Prototype((None, None)),
    "raise": _NUMBER,
    "setopt": Prototype((TEXT, TEXT), required=1),
    "skip": _NOTHING,
    "snapshot": Prototype((TEXT,)),
    "speculate": _NUMBER,
    "stack": _STACK,
    "stop": _NOTHING,
    "sym": _SYMBOL,
    "system": _FORMAT,
    "trace": _ONE,
    "tracemem": Prototype((None, SIZE), is_variadic=True),
    "trunc": _ANYTHING,
    "uaddr": _SYMBOL,
    "ufunc": _SYMBOL,
    "umod": _SYMBOL,
    "ustack": _STACK,
    "usym": _SYMBOL,
}

AGGREGATING: Final[dict[str, Prototype]] = {
    AggregatingFunction.AVG.value: _ONE,
    AggregatingFunction.COUNT.value: _NOTHING,
    AggregatingFunction.LLQUANTIZE.value: Prototype((None, INT32, INT32, INT32, INT32), is_variadic=True),
    AggregatingFunction.LQUANTIZE.value: Prototype((None, INT32, INT32), is_variadic=True),
    AggregatingFunction.MAX.value: _ONE,
    AggregatingFunction.MIN.value: _ONE,
    AggregatingFunction.QUANTIZE.value: _FORMAT,
    AggregatingFunction.STDDEV.value: _ONE,
    AggregatingFunction.SUM.value: _ONE,
}
