"""A stack -> the names of its frames."""

from collections.abc import Sequence

from kinst.runtime.clauses.environment import CALLER, Stack, Symbols


def frame_names(stack: Stack, symbols: Symbols) -> Sequence[str]:
    """The text of frames, innermost first. All but the first are return addresses, or where code was interrupted."""
    kind = "ustack" if stack.is_user else "stack"
    return stack.names or [
        symbols.describe(address, CALLER if place else kind) for place, address in enumerate(stack.addresses)
    ]
