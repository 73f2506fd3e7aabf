"""What can be wrong with a typed value. Each error is also the one that Python's own code expects in such a place."""

from kinst.targets.errors import MachineError, UsageError


class MemoryFaultError(MachineError):
    """A typed value is where no memory is."""

    def __init__(self, path: str, address: int, why: str = "") -> None:
        """`path`: how the program came there, as `init_task.mm->pgd`."""
        super().__init__(f"{path}: {why or 'no memory'} at {address:#x}")
        self.path = path
        self.address = address


class NoMemberError(UsageError, AttributeError):
    """A struct or union has no such member, or a value has none at all."""


class OperandError(UsageError, TypeError):
    """A type does not allow that."""


class RangeError(UsageError, IndexError):
    """An index is outside of an array, or a walk goes too far."""


class NoNameError(UsageError, KeyError):
    """The image has no variable, function, enumerator or type of that name."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError's would be in quotes
