"""What a CPU's state in the emulator may be like when it comes from a file: which bits a guest can have changed.

The state is QEMU's `struct CPUArchState`, without padding of ours. It has more than registers: the index of a register,
the number of a table of the MMU, pointers of the process, counts that loops run to. Nothing checks those where they are
used. So it is the other way round here: what no row names is as in a CPU that was just made.
"""

from collections.abc import Callable, Collection, Iterable, Iterator

from kinst.targets.values import dataclass

Getter = Callable[[str], int]  # a field's value, by its name


@dataclass(frozen=True, slots=True)
class Field:
    """A number in the state, or `count` of them that are `stride` bytes apart (0: that follow each other).

    `free`: the bits that a guest changes as it likes; the others stay. `values`: those that it can have; None: any.
    `transient`: it is the host's, written before it is read, and has no place in a file.
    """

    name: str
    offset: int
    size: int
    free: int = -1
    count: int = 1
    stride: int = 0
    values: Collection[int] | None = None
    transient: bool = False

    def offsets(self) -> Iterator[int]:
        """Where each of them is."""
        step = self.stride or self.size
        return iter(range(self.offset, self.offset + step * self.count, step))


@dataclass(frozen=True, slots=True)
class StateLayout:
    """The state of one machine. `size`: its bytes. `agrees`: what contradicts something else in it; None: nothing."""

    size: int
    fields: tuple[Field, ...]
    agrees: Callable[[Getter], str | None]

    def problem(self, content: bytes, new: bytes) -> str | None:
        """What a state says that no guest can have brought about; None: nothing. `new`: the state of that CPU when it
        was just made. Both have `size` bytes."""
        return self._changed(content, new) or self._no_value(content) or self.agrees(self._getter(content))

    def without_transient(self, content: bytes) -> bytes:
        """A state with zeros where it is the host's."""
        for field in self.fields:
            if field.transient:
                content = content[: field.offset] + bytes(field.size) + content[field.offset + field.size :]
        return content

    def _changed(self, content: bytes, new: bytes) -> str | None:
        different = int.from_bytes(content, "little") ^ int.from_bytes(new, "little")
        for field in self.fields:
            mask = field.free & (1 << 8 * field.size) - 1
            for offset in field.offsets():
                different &= ~(mask << 8 * offset)
        if not different:
            return None
        at = ((different & -different).bit_length() - 1) // 8
        return f"{self._name(at)} is not what the guest can have made of it"

    def _name(self, at: int) -> str:
        for field in self.fields:
            if any(offset <= at < offset + field.size for offset in field.offsets()):
                return field.name
        return f"the word at {at & ~7}, which is the emulator's own,"

    def _no_value(self, content: bytes) -> str | None:
        for field in self.fields:
            if field.values is not None:
                for offset in field.offsets():
                    value = int.from_bytes(content[offset : offset + field.size], "little")
                    if value not in field.values:
                        return f"{field.name} cannot be {value:#x}"
        return None

    def _getter(self, content: bytes) -> Getter:
        def get(name: str) -> int:
            field = next(one for one in self.fields if one.name == name)
            return int.from_bytes(content[field.offset : field.offset + field.size], "little")

        return get


def words(names: str, offset: int, size: int = 8) -> Iterable[Field]:
    """Numbers that follow each other, all bits of which are the guest's."""
    return (Field(name, offset + size * at, size) for at, name in enumerate(names.split()))


def float_status(name: str, offset: int) -> tuple[Field, ...]:
    """QEMU's `float_status`: how floating-point numbers are rounded, by numbers that its arithmetic has a case for."""
    return (
        Field(f"{name}.tininess", offset, 1, values=(0, 1)),
        Field(f"{name}.rounding", offset + 1, 1, values=range(6)),
        Field(f"{name}.exceptions", offset + 2, 1),
        Field(f"{name}.precision", offset + 3, 1, values=(0, 32, 64, 80)),
        Field(f"{name}.modes", offset + 4, 1, count=4, values=(0, 1)),
    )
