"""An image -> where Linux in it has the address of a CPU's current task."""

from typing import TYPE_CHECKING, Final

from kinst.targets.image import Image
from kinst.targets.values import dataclass

if TYPE_CHECKING:
    from kinst.rewriter.standalone.code.trampoline import Current

EVIDENCE: Final = "init_task"  # a symbol that only Linux has
_TABLE: Final = "__per_cpu_offset"
_MOST: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class Variable:
    """The link address of the table of the addresses of each CPU's per-CPU data, and that of the variable in it, or its
    offset. Both are 0 where a register has the task."""

    table: int = 0
    address: int = 0

    @property
    def current(self) -> "Current":
        """What reads it."""
        from kinst.rewriter.standalone.code.trampoline import Current  # an image that is kept needs none

        return Current(is_linked=self.address >= _MOST)


def variable_of(image: Image) -> Variable | None:
    """None: the image is not Linux, or has no such variable."""
    symbols, facts = image.symbols, image.facts.linux.current
    if symbols.address_of(EVIDENCE) is None:
        return None
    if facts.registers:
        return Variable()
    table = symbols.address_of(_TABLE)
    places = (symbols.address_of(name) for name in facts.per_cpu_names)
    place = next((one for one in places if one is not None), None)
    return None if table is None or place is None else Variable(table, place)
