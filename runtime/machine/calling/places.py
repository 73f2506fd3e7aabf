"""Where calls have their texts, buffers and stack, in memory that the guest does not know of.

No image is linked at these addresses, and no machine has RAM there. Behind each buffer, and at the address that a
function returns to, every access faults.
"""

from typing import TYPE_CHECKING, Final

from kinst.targets.values import dataclass

if TYPE_CHECKING:
    from kinst.runtime.machine.memory import PhysicalMemory

ARENA: Final = 1 << 42  # where images are that were loaded for calls
_TEXTS: Final = 1 << 43
_TEXTS_SIZE: Final = 1 << 16
_STACK_SIZE: Final = 1 << 20
_STACK_TOP = CALL_RETURNS_TO = _TEXTS + _TEXTS_SIZE + _STACK_SIZE
_BUFFERS: Final = _TEXTS + (1 << 30)
BUFFER_SIZE: Final = 1 << 20
BUFFER_COUNT: Final = 8
_STEP: Final = 2 * BUFFER_SIZE  # from one to the next
_END: Final = _BUFFERS + BUFFER_COUNT * _STEP
_NOTHING: Final = -1


@dataclass(frozen=True, slots=True)
class CallPlace:
    """The virtual addresses that a call uses."""

    stack: int  # its stack is below
    texts: int = _TEXTS
    texts_size: int = _TEXTS_SIZE
    returns_to: int = CALL_RETURNS_TO

    def buffer_end(self, number: int) -> int:
        """The first address behind a buffer, by its number from 0."""
        return _BUFFERS + number * _STEP + BUFFER_SIZE


OWN_STACK: Final = CallPlace(_STACK_TOP)


def add_call_memory(memory: "PhysicalMemory", *, has_stack: bool) -> list[tuple[int, int, int]]:
    """Add the memory for calls. Returns the aliases by which it is reached; see `AddressSpace.alias`."""
    size = _STACK_TOP - _TEXTS if has_stack else _TEXTS_SIZE
    memory.add_ram(_TEXTS, size)
    memory.add_ram(_BUFFERS, BUFFER_COUNT * BUFFER_SIZE)
    buffers = [
        (_BUFFERS + number * _STEP, _BUFFERS + number * BUFFER_SIZE, BUFFER_SIZE) for number in range(BUFFER_COUNT)
    ]
    return [(_TEXTS, _TEXTS, size), *buffers, (_TEXTS, _NOTHING, _END - _TEXTS)]
