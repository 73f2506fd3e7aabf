"""What a user of Qiling would otherwise write: the same workload and the same record, with Qiling's own hooks.

The record of a hit is what dtrace_probe() is given: the probe and arg0 to arg4, appended to a list, as in ours.
Registers are read as Qiling's documentation reads them, as attributes of `ql.arch.regs`.
"""

from collections.abc import Callable

from qiling import Qiling
from qiling.const import QL_ARCH, QL_OS, QL_VERBOSE
from unicorn import UC_HOOK_CODE

from tests.bench.workload import IMAGE_SIZE, Workload

STACK = 0x200000  # from the link address
STOP = 0x210000
MASK = (1 << 64) - 1

Record = tuple[int, int, int, int, int, int]


class QilingRun:
    """The workload in a bare Qiling machine with Qiling's default mapping."""

    def __init__(self, workload: Workload, functions: int) -> None:
        self.workload = workload
        self.records: list[Record] = []
        self.hits = 0
        architecture = {"amd64": QL_ARCH.X8664, "arm64": QL_ARCH.ARM64, "riscv64": QL_ARCH.RISCV64}[workload.arch]
        profile = {
            "CODE": {
                "ram_size": str(IMAGE_SIZE),
                "entry_point": str(workload.base),
                "heap_size": "0x1000",
                "load_address": str(workload.base),
            }
        }
        self.ql = Qiling(
            code=workload.code(functions),
            archtype=architecture,
            ostype=QL_OS.BLOB,
            profile=profile,
            verbose=QL_VERBOSE.OFF,
        )
        self.ql.mem.map(workload.base + IMAGE_SIZE, 0x20000)
        self.ql.mem.write(workload.table, workload.pointers(functions))
        self.arguments, self.stack = _REGISTERS[workload.arch]
        self.link = {"amd64": None, "arm64": "x30", "riscv64": "ra"}[workload.arch]

    def run(self, count: int, rounds: int) -> None:
        """Call ``bench(table, count, rounds)``."""
        registers, base = self.ql.arch.regs, self.workload.base
        stack = base + STACK + 0x8000
        if self.link is None:
            stack -= 8
            self.ql.mem.write_ptr(stack, base + STOP)
        else:
            registers.write(self.link, base + STOP)
        registers.write(self.stack, stack)
        for name, value in zip(self.arguments, (self.workload.table, count, rounds), strict=False):
            registers.write(name, value)
        self.ql.emu_start(base, base + STOP)

    def _recorder(self) -> Callable[[int], None]:
        registers, append = self.ql.arch.regs, self.records.append
        a, b, c, d, e = self.arguments

        def record(number: int) -> None:
            append(
                (
                    number,
                    getattr(registers, a),
                    getattr(registers, b),
                    getattr(registers, c),
                    getattr(registers, d),
                    getattr(registers, e),
                )
            )

        return record

    def hook_addresses(self, count: int) -> None:
        """One `hook_address` on the entry of each of the first `count` functions."""
        record = self._recorder()

        def fired(ql: Qiling, number: int) -> None:
            record(number)

        for number in range(count):
            self.ql.hook_address(fired, self.workload.function_address(number), user_data=number)

    def count_by_hooks(self, count: int) -> None:
        """One `hook_address` on each entry, whose callback does nothing but count."""

        def fired(_ql: Qiling) -> None:
            self.hits += 1

        for number in range(count):
            self.ql.hook_address(fired, self.workload.function_address(number))

    def hook_unicorn(self, count: int) -> None:
        """The same with hooks of Unicorn's own binding for Python."""

        def fired(_uc: object, _address: int, _size: int, _data: object) -> None:
            self.hits += 1

        for number in range(count):
            address = self.workload.function_address(number)
            self.ql.uc.hook_add(UC_HOOK_CODE, fired, begin=address, end=address)

    def hook_breakpoints(self, count: int) -> None:
        """Breakpoints at the entries and one `hook_intr`, which carries out the displaced instruction."""
        registers, memory, record = self.ql.arch.regs, self.ql.mem, self._recorder()
        numbers = {self.workload.function_address(number): number for number in range(count)}
        opcode, bias = _BREAKPOINTS[self.workload.arch]
        for address in numbers:
            memory.write(address, opcode)
        displaced = _DISPLACED[self.workload.arch]

        def fired(ql: Qiling, intno: int) -> None:
            address = registers.arch_pc - bias
            record(numbers[address])
            registers.arch_pc = displaced(ql, address)

        self.ql.hook_intr(fired)


_REGISTERS = {
    "amd64": (("rdi", "rsi", "rdx", "rcx", "r8"), "rsp"),
    "arm64": (("x0", "x1", "x2", "x3", "x4"), "sp"),
    "riscv64": (("a0", "a1", "a2", "a3", "a4"), "sp"),
}


def _push_rbp(ql: Qiling, address: int) -> int:
    ql.arch.stack_push(ql.arch.regs.rbp)
    return address + 1


def _stp_pre_index(ql: Qiling, address: int) -> int:
    registers = ql.arch.regs
    stack = registers.sp - 32
    ql.mem.write_ptr(stack, registers.x29)
    ql.mem.write_ptr(stack + 8, registers.x30)
    registers.sp = stack
    return address + 4


def _addi_sp(ql: Qiling, address: int) -> int:
    ql.arch.regs.sp = (ql.arch.regs.sp - 32) & MASK
    return address + 4


# riscv64: a real ebreak ends the emulation (8,800 ns); an all-zero illegal instruction comes to hook_intr.
_BREAKPOINTS = {"amd64": (b"\xcc", 1), "arm64": (bytes.fromhex("808120d4"), 0), "riscv64": (bytes(4), 4)}
_DISPLACED: dict[str, Callable[[Qiling, int], int]] = {
    "amd64": _push_rbp,
    "arm64": _stp_pre_index,
    "riscv64": _addi_sp,
}
