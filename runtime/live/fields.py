"""What a clause reads -> the fields of a record that tell it, for one image and one machine; or why there are none."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from kinst.rewriter.standalone.current_task import variable_of
from kinst.rewriter.standalone.request import argument_fields
from kinst.runtime.clauses.profiles import NONE
from kinst.runtime.systems.linux_records import MEMBERS, TaskWords
from kinst.runtime.systems.linux_registers import saved_from_user
from kinst.runtime.tracing.standalone.columns import CpuSource, own_number
from kinst.runtime.unwinding.stack_regions import stack_size
from kinst.targets.c_types import ImageTypes
from kinst.targets.image import Image
from kinst.targets.manifest.packed import ProbeKind
from kinst.targets.module_code import code_of
from kinst.targets.standalone import (
    CPU,
    MOST_STACK,
    RETURN_ADDRESS,
    TASK,
    StackField,
    behind_field,
    member_field,
    stack_of,
)

_BORDERS: Final = frozenset({int(ProbeKind.FBT_ENTRY), int(ProbeKind.FBT_RETURN)})
_FRAMES: Final = 64  # words of the stack that tell one from another
_OF_TASKS: Final = frozenset((*MEMBERS, "curthread"))
_SAME: Final = frozenset({"ppid", "uid", "gid", "execargs"})  # where there is no system: 0, and the image's name


class NotKeptError(Exception):
    """No record can have it. Its text is the reason."""


@dataclass(frozen=True)
class Fields:
    """Those of one image, the original. `system` is --os; `count` gives how many CPUs its machine has, and is only
    called if that matters."""

    image: Image
    types: ImageTypes
    system: str
    count: Callable[[], int]

    def of(self, name: str, kinds: set[int]) -> Iterable[str]:
        """The fields for a builtin variable or a function of D's, in a clause of probes of some kinds. Raises
        NotKeptError."""
        match name:
            case "cpu":
                return self._of_cpu()
            case "caller" if kinds <= _BORDERS:
                return self._of_caller()
            case "caller" | "stack()" | "stackdepth":
                return self._of_frames(MOST_STACK)
            case _ if name in _OF_TASKS or (name in _SAME and not self._has_system):
                return self._of_task(name)
            case _:
                raise NotKeptError("is not recorded under QEMU")

    def of_any_cpu(self) -> tuple[str, ...]:
        """What tells the CPU, if there may be several and that can be had: for the output."""
        source = self.cpu_source if self._cpus > 1 else None
        if source is None:
            return ()
        return (source.name,) if source.name == CPU else (TASK, source.name)

    def of_action(self) -> tuple[str, ...]:
        """What an action in Python may read of its hits, which cannot be known before: all but the stack, for which
        some kernels have no space."""
        return (*argument_fields(self.image.facts), *self._of_caller())

    def _of_cpu(self) -> tuple[str, ...]:
        found = self.of_any_cpu()
        if not found and self._cpus > 1:
            raise NotKeptError("of several CPUs, nothing tells which one runs it")
        return found

    def of_thread(self) -> tuple[str, ...]:
        """What tells threads apart: the task, and whether its stack is in use; else the stack."""
        if not self._has_system:
            return self._of_frames(_FRAMES)
        words = self._words.of_thread()
        if words is None:
            raise NotKeptError(self._why_no_types)
        return (TASK, *map(member_field, words), *self._registers(self.image.facts.stack_pointer))

    def of_call(self) -> tuple[str, ...]:
        """What tells in which system call a task is: the task, wherever its stack pointer is."""
        if not self._has_system:
            raise NotKeptError("nothing tells one task from another")
        return (TASK, *map(member_field, self._words.of_thread() or ()))

    def of_saved(self, offset: int) -> tuple[str, ...]:
        """A word of the registers that user mode had, at its offset in struct pt_regs, to which the first argument
        points: at the end of the task's stack, where it can be read whatever that argument is."""
        stack = self._words.stack if self._has_system else None
        at, facts = self._saved_at, self.image.facts
        if stack is None or at is None:
            raise NotKeptError(self._why_no_types if self._has_system else "nothing tells where its stack ends")
        saved = behind_field(stack, at + offset)
        return (*self._registers(facts.arguments[0]), TASK, member_field(stack), saved)

    @cached_property
    def _saved_at(self) -> int | None:
        symbols = self.image.symbols
        return saved_from_user(symbols.address_of, self.types, stack_size(symbols))

    @cached_property
    def _cpus(self) -> int:
        return self.count()

    @cached_property
    def cpu_source(self) -> CpuSource | None:
        """The field that tells the CPU, and how; None: none does."""
        number = self.image.facts.cpu_number
        if number.is_cheap and number.only_with is None:
            return own_number(self.image.facts)
        if self._has_system:
            found = self._words.cpu
            if found is None:
                return None
            offset, word = found
            return CpuSource(member_field(word), 8 * (offset - word), (1 << 32) - 1)
        return own_number(self.image.facts) if number.only_with is None or self._has(*number.only_with) else None

    def _of_caller(self) -> tuple[str, ...]:
        """At an entry and at a return the address is in the link register, or on top of the stack."""
        facts = self.image.facts
        frame = self._registers(facts.pc, facts.stack_pointer, facts.frame_pointer)
        if facts.link_register is not None:
            return (*frame, *self._registers(facts.link_register))
        return (*frame, str(StackField(RETURN_ADDRESS)))

    def _of_frames(self, words: int) -> tuple[str, ...]:
        facts = self.image.facts
        link = () if facts.link_register is None else (facts.link_register,)
        registers = self._registers(facts.pc, facts.stack_pointer, facts.frame_pointer, *link)
        size, offset = stack_size(self.image.symbols), self._words.stack if self._has_system else None
        if size is None or offset is None:
            return (*registers, str(StackField(words)))
        return (*registers, TASK, member_field(offset), str(StackField(words, offset, size)))

    def _of_task(self, name: str) -> tuple[str, ...]:
        if not self._has_system:
            return ()
        if name == "curthread":
            return (TASK,)
        words = self._words.of(name)
        if words is None:
            raise NotKeptError(self._why_no_types)
        return (TASK, *map(member_field, words))

    def _registers(self, *numbers: int) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.image.facts.registers[number] for number in numbers))

    @property
    def _why_no_types(self) -> str:
        return self.types.obstacle() or "its types do not tell where a task has it"

    @cached_property
    def _words(self) -> TaskWords:
        return TaskWords(self.types)

    @cached_property
    def _has_system(self) -> bool:
        """Whether it is Linux, and says where the current task is."""
        return self.system != NONE and variable_of(self.image) is not None

    def _has(self, wanted: bytes, unwanted: bytes) -> bool:
        """Whether the code has one instruction, and not another one."""
        code = [code_of(self.image, region).tobytes() for region in self.image.code_regions]
        return any(wanted in one for one in code) and not any(unwanted in one for one in code)


def joined(fields: Iterable[str]) -> tuple[str, ...]:
    """All that some fields ask for: each once, and of the stack the most, at the end."""
    every = dict.fromkeys(fields)
    stacks = [found for found in map(stack_of, every) if found is not None]
    plain = tuple(name for name in every if stack_of(name) is None)
    if not stacks:
        return plain
    most = max(stacks, key=lambda one: (one.size > 0, one.words))
    words = max(one.words for one in stacks)
    return (*plain, str(StackField(words, most.offset, most.size)))
