"""Linux: a probe that fires -> the task that its CPU runs, and its attributes in the kernel's structures.

Where the current task is, the machine's record says (`kinst.targets.arch.linux.CurrentTask`). The names of a task's
members have not changed since 2.6; where they lie is asked of BTF or DWARF.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

from kinst.runtime.clauses.environment import TaskState
from kinst.runtime.clauses.profiles import Guest, OperatingSystem, PanicSign
from kinst.runtime.hits.thread_ranges import ThreadRange, ThreadRanges
from kinst.runtime.providers.structures import find_way, followed
from kinst.runtime.systems.linux_constants import CONSTANTS
from kinst.runtime.systems.linux_registers import SavedRegisters
from kinst.runtime.systems.linux_tasks import LinuxTasks
from kinst.runtime.systems.linux_threads import LinuxThreads
from kinst.runtime.trap.faults import Fault
from kinst.runtime.trap.trap import Firing

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
_NAMES: Final = ("execname", "execargs")
# What is the same everywhere: there are no zones and no jails, so everything is in the one that DTrace shows then.
_CONSTANTS: Final = {"zonename": b"global", "jailname": b"0"}


class LinuxProfile:
    """`GuestProfile` of Linux. Before the first task runs, and without the types that are needed, numbers are 0."""

    description = "the task; an interrupt on its stack has its own, and so has each stack of interrupts"

    def __init__(self, guest: Guest) -> None:
        """Nothing is read yet."""
        self._guest, self._memory, self._load = guest, guest.memory, guest.memory.load
        self._current_at, self._register = guest.arch.linux.current, guest.register
        self._per_cpu = _per_cpu_offsets(guest)
        self._stack_pointer = guest.arch.stack_pointer
        self._way = cache(lambda *members: find_way(guest.types, _TASK, members))  # types are large: asked when wanted
        self._saved = SavedRegisters(guest)
        self._threads = LinuxThreads(guest.memory, self._way, guest.stack_size, sees_others=guest.task is None)
        self._tasks = LinuxTasks(guest)

    def begin(self, forget: Callable[[int], None]) -> None:
        """See `GuestProfile`."""
        self._guest.threads.begin(forget)
        self._threads.begin(forget)

    def thread(self, firing: Firing) -> int:
        """The task's key. An interrupt handler has a key of its own."""
        key = self._guest.threads.thread(firing)
        task = 0 if key < 0 else self._current()
        if not task:
            return key
        sp = None if self._guest.is_user(firing) else firing.regs[self._stack_pointer]
        found = self._threads.key(task, sp)
        return key if found is None else found

    def ranges(self, changed: Callable[[], None]) -> ThreadRanges | None:
        """By the stack, the register with the task or with the CPU's own data, and what distinguishes a task from the
        next one at its address."""
        stacks = self._guest.threads.ranges(changed)
        if stacks is None:
            return None
        self._threads.on_change(changed)
        of, (identity, *_) = stacks.of, (*self._current_at.registers, *self._current_at.per_cpu_bases)
        return ThreadRanges(lambda firing: self._range(firing, identity, of(firing)), identity)

    def _range(self, firing: Firing, identity: str, stack: ThreadRange | None) -> ThreadRange | None:
        if stack is None or self._guest.is_user(firing):
            return None
        task, register = self._current(), self._register(identity)
        known = self._threads.known(task) if task else None
        current = self._current_by(task, register)
        if known is None or current is None:
            return None
        low, high, sp = stack.low, stack.high, firing.regs[self._stack_pointer]
        if known.low < sp <= known.high:
            low, high = max(low, known.low), min(high, known.high)
        elif low < known.high and known.low < high:  # a page that is partly the task's stack
            return None
        return ThreadRange(low, high, self.thread(firing), register, (*current, known.word))

    def _current_by(self, task: int, register: int) -> tuple[tuple[int, int], ...] | None:
        """The words by which a task is the current one besides the identifying register; None: by others."""
        if self._current_at.registers:
            return () if register == task else None
        at = (register + self._per_cpu[0]) % _ADDRESSES if self._per_cpu else 0
        try:
            return ((at, task),) if self._load(at, _WORD) == task else None
        except Fault:
            return None

    def integer(self, firing: Firing, name: str) -> int:
        """pid (of the thread group, as in user space), tid, ppid, uid, gid, curthread; errno where a system
        call returns; others are 0."""
        if name == "errno":
            error = firing.enabling.error
            return 0 if error is None else error(firing)
        task = self._current()
        return task if name == "curthread" else self._number(task, *_NUMBERS.get(name, ()))

    def string(self, firing: Firing, name: str) -> bytes:
        """execname and execargs, zonename and jailname; others are empty."""
        if name not in _NAMES:
            return _CONSTANTS.get(name, b"")
        task = self._current()
        return ((name == "execargs" and self._arguments(task)) or self._name(task)) if task else b""

    def is_user(self, firing: Firing) -> bool:
        """Whether the CPU is in user mode."""
        return self._guest.is_user(firing)

    def user_registers(self, firing: Firing) -> Sequence[int] | None:
        """See `GuestProfile`: what the task's last entry into the kernel saved. Kernel threads have none."""
        if self._guest.is_user(firing):
            return firing.regs
        task, at = self._current(), self._saved.from_user
        if not task or at is None or not self._number(task, "mm"):
            return None
        return self._saved.at(self._number(task, "stack") + at)

    def interrupted(self, sp: int) -> Sequence[int] | None:
        """See `GuestProfile`: entry code calls the handler when the stack pointer is that of a struct pt_regs."""
        return self._saved.of_kernel(sp)

    def tasks(self) -> Sequence[TaskState]:
        """All threads, including kernel threads."""
        return list(self._tasks.each())

    def why_not(self, name: str) -> str:
        """See `GuestProfile`."""
        if (name not in _NUMBERS and name not in _NAMES) or self._way("comm"):
            return ""
        return f"{self._guest.name}: pid, execname and the like are 0 or empty: {self._obstacle()}"

    def _obstacle(self) -> str:
        return self._guest.types.obstacle() or f"its types do not have what {_TASK} is"

    def _current(self) -> int:
        """The current task's address; 0 before there is one."""
        if self._guest.task is not None:
            return self._guest.task()
        for name in self._current_at.registers:
            task = self._register(name)
            if task & _KERNEL and self._is_there(task):
                return task
        for name in self._current_at.per_cpu_bases:
            base = self._register(name)
            for offset in self._per_cpu:
                try:
                    task = self._load((base + offset) % _ADDRESSES, _WORD)
                except Fault:  # no such area yet, or the user's base
                    continue
                if task & _KERNEL and self._is_there(task):
                    return task
        return 0

    def _is_there(self, address: int) -> bool:
        try:
            self._load(address, _WORD)
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


def _per_cpu_offsets(guest: Guest) -> tuple[int, ...]:
    """The offset of the variable in per-CPU data, for each of its names that the image has."""
    found = (guest.symbol(name) for name in guest.arch.linux.current.per_cpu_names)
    return tuple(address + guest.bias if address & _KERNEL else address for address in found if address is not None)


def linux_profile(guest: Guest) -> LinuxProfile | None:
    """The profile of an image that has `init_task`; else None."""
    return None if guest.symbol("init_task") is None else LinuxProfile(guest)


# kernel/panic.c: the CPU that panics writes its number into panic_cpu. Behind the last line ("---[ end Kernel panic"),
# which a kernel that is to restart (panic_timeout) does not reach, it sets suppress_printk, which is set nowhere else.
_PANIC: Final = (PanicSign("panic_cpu", 4, 0xFFFF_FFFF), PanicSign("suppress_printk", 4, 0))
_VARIABLES: Final[dict[str, str]] = {
    "init_task": "struct task_struct",
    "init_mm": "struct mm_struct",
    "init_net": "struct net",
    "init_nsproxy": "struct nsproxy",
    "init_pid_ns": "struct pid_namespace",
    "init_user_ns": "struct user_namespace",
    "init_uts_ns": "struct uts_namespace",
    "jiffies": "unsigned long",
    "jiffies_64": "unsigned long",
    "modules": "struct list_head",
    "super_blocks": "struct list_head",
    "net_namespace_list": "struct list_head",
    "saved_command_line": "char *",
    "nr_cpu_ids": "unsigned int",
}
LINUX: Final = OperatingSystem("linux", "init_task", linux_profile, CONSTANTS, _PANIC, _VARIABLES)
