"""stack(), ustack(), jstack(), and sym(), func(), mod() with their user versions: as actions, keys and printf's
arguments."""

from typing import Final

from kinst.runtime.dlang import program
from kinst.runtime.dlang.check import prototypes
from kinst.runtime.dlang.check.checking import Checking
from kinst.runtime.dlang.check.signatures import ACTIONS
from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.errors import DError
from kinst.runtime.dlang.syntax.words import STACKS, SYMBOLS
from kinst.runtime.dlang.types.types import STACK, SYMBOL, UINTPTR

_MOST_FRAMES: Final = 1 << 16  # a deeper stack is a corrupt one, whose frames form a circle


def is_key_call(function: str) -> bool:
    """Whether a call of this function can be a key."""
    return function in STACKS or function in SYMBOLS


def key_call(node: tree.Call, checking: Checking) -> program.StackKey | program.SymbolKey:
    """A call of one of these functions as a key. Raises DError: D_STACK_*, D_USTACK_*, D_PROTO_*."""
    if node.function in SYMBOLS:
        return symbol_key(node, checking)
    trace = stack_trace(node, checking)
    return program.StackKey(STACK, trace.is_user, trace.frames)


def symbol_key(node: tree.Call, checking: Checking) -> program.SymbolKey:
    """sym(), func(), mod() and the like as a key: the name of an address. Raises DError: D_PROTO_*."""
    values = [checking.expression(argument) for argument in node.arguments]
    prototypes.check(f"{node.function}( )", ACTIONS[node.function], values, node.span)
    return program.SymbolKey(SYMBOL, node.function, checking.convert(values[0], UINTPTR))


def stack_trace(node: tree.Call, checking: Checking) -> program.StackTrace:
    """`stack([frames])` and `ustack([frames[, bytes of strings]])` as an action. Raises DError: D_STACK_*,
    D_USTACK_*."""
    values = [checking.expression(argument) for argument in node.arguments]
    return _kernel_stack(node, values) if node.function == "stack" else _user_stack(node, values, checking)


def _kernel_stack(node: tree.Call, values: list[program.Expression]) -> program.StackTrace:
    if len(values) > 1:
        raise DError("D_STACK_PROTO", "stack( ) prototype mismatch: too many arguments", node.span)
    if not values:
        return program.StackTrace(is_user=False, frames=None)
    frames = positive(values[0])
    if frames is None:
        text = "stack( ) size must be a non-zero positive integral constant expression"
        raise DError("D_STACK_SIZE", text, node.arguments[0].span)
    return program.StackTrace(is_user=False, frames=min(frames, _MOST_FRAMES))


def _user_stack(node: tree.Call, values: list[program.Expression], checking: Checking) -> program.StackTrace:
    frames, text_size = (checking.context.options.number(name) if node.function == "jstack" else 0 for name in _JSTACK)
    if values:
        given = positive(values[0])
        if given is None:
            text = f"{node.function}( ) argument #1 must be a non-zero positive integer constant"
            raise DError("D_USTACK_FRAMES", text, node.arguments[0].span)
        frames = given
    if len(values) > 1:
        text_size = _string_size(node, values)
    return program.StackTrace(is_user=True, frames=min(frames, _MOST_FRAMES) or None, string_size=text_size)


_JSTACK: Final = ("jstackframes", "jstackstrsize")


def _string_size(node: tree.Call, values: list[program.Expression]) -> int:
    size = values[1]
    if not isinstance(size, program.Integer) or size.value < 0:
        text = f"{node.function}( ) argument #2 must be a positive integer constant"
        raise DError("D_USTACK_STRSIZE", text, node.arguments[1].span)
    if len(values) > 2:
        raise DError("D_USTACK_PROTO", f"{node.function}( ) prototype mismatch: too many arguments", node.span)
    return size.value & 0xFFFFFFFF


def positive(value: program.Expression) -> int | None:
    """The value of a positive integer constant; None for anything else."""
    return value.value if isinstance(value, program.Integer) and value.value > 0 else None
