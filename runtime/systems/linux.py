"""Linux: a probe that fires -> the task that its CPU runs, and what the kernel keeps of it.

Where the current task is, the machine's record says (`kinst.targets.arch.linux.CurrentTask`). The names of a task's
members have not changed since 2.6; where they lie is asked of BTF or DWARF.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Final

from kinst.runtime.clauses.environment import Memory
from kinst.runtime.clauses.profiles import Guest
from kinst.runtime.trap.faults import Fault
from kinst.runtime.trap.trap import Firing
from kinst.targets.arch.linux import CurrentTask
from kinst.targets.c_types import Aggregate, CType, ImageTypes, Pointer, size_of, strip

_TASK: Final = "struct task_struct"
_KERNEL: Final = 1 << 63  # set in every address of the kernel's, on all machines
_ADDRESSES: Final = 1 << 64
_WORD: Final = 8
_LONGEST_NAME: Final = 16  # TASK_COMM_LEN
_LONGEST_ARGUMENTS: Final = 256

# What D calls it -> members on the way to it, from the task.
_NUMBERS: Final[dict[str, tuple[str, ...]]] = {
    "pid": ("tgid",),
    "tid": ("pid",),
    "ppid": ("real_parent", "tgid"),
    "uid": ("cred", "uid"),
    "gid": ("cred", "gid"),
}

Way = tuple[tuple[int, int], ...]  # (offset, size) of each member on a way: pointers, then what is wanted


class LinuxProfile:
    """`GuestProfile` of Linux. Before the first task runs, and where the types do not tell, numbers are 0."""

    def __init__(self, guest: Guest, candidates: Callable[[], Iterator[int]]) -> None:
        """`candidates` yields what may be the address of the current task, the likeliest first."""
        self._guest, self._memory, self._candidates = guest, guest.memory, candidates
        self._way = cache(lambda *members: find_way(guest.types, *members))  # types are large: asked when first wanted

    def thread(self, firing: Firing) -> int:
        """The task's number, or its address where it is an idle task's (number 0 on every CPU). What an interrupt runs
        has a key of its own."""
        key = self._guest.threads(firing)
        task = 0 if key < 0 else self._current()
        return (task and (self._number(task, "pid") or task)) or key

    def integer(self, firing: Firing, name: str) -> int:
        """pid (of the thread group, as users count processes), tid, ppid, uid, gid, curthread; others are 0."""
        task = self._current()
        return task if name == "curthread" else self._number(task, *_NUMBERS.get(name, ()))

    def string(self, firing: Firing, name: str) -> bytes:
        """execname and execargs; others are empty."""
        task = self._current()
        if name not in ("execname", "execargs") or not task:
            return b""
        return (name == "execargs" and self._arguments(task)) or self._name(task)

    def is_user(self, firing: Firing) -> bool:
        """Whether the CPU is in user mode."""
        return self._guest.is_user(firing)

    def _current(self) -> int:
        """The current task's address; 0 before there is one."""
        return next((task for task in self._candidates() if task & _KERNEL and self._is_there(task)), 0)

    def _is_there(self, address: int) -> bool:
        try:
            self._memory.load(address, _WORD)
        except Fault:
            return False
        return True

    def _number(self, task: int, *members: str) -> int:
        way = self._way(*members)
        return followed(self._memory, task, way) if task and way else 0

    def _name(self, task: int) -> bytes:
        way = self._way("comm")
        return self._memory.string(task + way[0][0], _LONGEST_NAME) if way else b""

    def _arguments(self, task: int) -> bytes:
        """The words that the program was started with; none of a kernel thread, and if they are paged out."""
        start, end = self._number(task, "mm", "arg_start"), self._number(task, "mm", "arg_end")
        try:
            words = self._memory.read(start, min(end - start, _LONGEST_ARGUMENTS)) if start < end else b""
        except Fault:
            return b""
        return words.rstrip(b"\0").replace(b"\0", b" ")


def find_way(types: ImageTypes, *members: str) -> Way | None:
    """How to get from a task to a member, or to one of a structure that a member points to; None: types do not tell."""
    kind: CType | None = types.type_named(_TASK)
    way: list[tuple[int, int]] = []
    for name in members:
        structure = _structure(types, kind)
        member = None if structure is None else structure.find(name)
        if member is None:
            return None
        way.append((member.offset, size_of(member.type) or 0))
        kind = member.type
    return tuple(way)


def _structure(types: ImageTypes, kind: CType | None) -> Aggregate | None:
    """The structure of this type, or that it points to, complete."""
    plain = None if kind is None else strip(kind)
    if isinstance(plain, Pointer):
        plain = strip(plain.target)
    if isinstance(plain, Aggregate) and plain.members is None:
        found = types.type_named(f"{plain.kind.value} {plain.tag}")
        plain = None if found is None else strip(found)
    return plain if isinstance(plain, Aggregate) else None


def followed(memory: Memory, address: int, way: Way) -> int:
    """The number at the end of a way; 0 where a pointer on it is NULL or leads nowhere."""
    for offset, size in way:
        if not address:
            return 0
        try:
            address = memory.load((address + offset) % _ADDRESSES, min(size, _WORD))
        except Fault:
            return 0
    return address


def linux_profile(guest: Guest) -> LinuxProfile | None:
    """Of an image that has `init_task`; else None."""
    if guest.symbol("init_task") is None:
        return None
    where = guest.arch.linux.current
    offsets = _per_cpu_offsets(guest, where)
    return LinuxProfile(guest, lambda: _candidates(guest, where, offsets))


def _per_cpu_offsets(guest: Guest, where: CurrentTask) -> tuple[int, ...]:
    found = (guest.symbol(name) for name in where.per_cpu_names)
    moved = (address + guest.bias if address & _KERNEL else address for address in found if address is not None)
    return tuple(moved)


def _candidates(guest: Guest, where: CurrentTask, per_cpu: tuple[int, ...]) -> Iterator[int]:
    for name in where.registers:
        yield guest.register(name)
    for base in map(guest.register, where.per_cpu_bases):
        for offset in per_cpu:
            try:
                yield guest.memory.load((base + offset) % _ADDRESSES, _WORD)
            except Fault:  # no such area yet, or the user's base
                continue
