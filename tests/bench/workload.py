"""A machine and a number of functions -> an image that calls each of them in turn, for timing calls and probe hits.

`bench(table, count, rounds)` calls the `count` functions of `table` one after the other, `rounds` times. Every function
is an ordinary one: it saves its frame, stores its first argument on the stack and loads it again.
"""

import struct
from dataclasses import dataclass

from tests.writers.elf import EM_AARCH64, EM_RISCV, EM_X86_64, Part, Symbol, elf64

FUNCTION_STRIDE = 32
TABLE_OFFSET = 0x100000  # from the link address
IMAGE_SIZE = 0x200000


@dataclass(frozen=True, slots=True)
class Workload:
    """The code of one machine, as assembled by GNU as from the listing in the comments."""

    arch: str
    elf_machine: int
    base: int
    bench: bytes
    function: bytes
    padding: bytes

    def function_address(self, number: int) -> int:
        """Address of function `number`; the driver comes first."""
        return self.base + 0x100 + number * FUNCTION_STRIDE

    @property
    def table(self) -> int:
        """Address of the table of function pointers."""
        return self.base + TABLE_OFFSET

    def code(self, functions: int) -> bytes:
        """The driver and the functions, from `base` on."""
        driver = self.bench + self.padding * ((0x100 - len(self.bench)) // len(self.padding))
        one = self.function + self.padding * ((FUNCTION_STRIDE - len(self.function)) // len(self.padding))
        return driver + one * functions

    def pointers(self, functions: int) -> bytes:
        """The table."""
        return struct.pack(f"<{functions}Q", *map(self.function_address, range(functions)))

    def image(self, functions: int) -> bytes:
        """An ELF file with a symbol for the driver and for each function."""
        code = self.code(functions)
        symbols = [Symbol("bench", self.base, len(self.bench))]
        symbols += [
            Symbol(f"f{number}", self.function_address(number), len(self.function)) for number in range(functions)
        ]
        parts = [Part(".text", self.base, code, 5), Part(".data", self.table, self.pointers(functions), 6)]
        return elf64(self.elf_machine, self.base, parts, symbols)


def _words(*words: int) -> bytes:
    return struct.pack(f"<{len(words)}I", *words)


AMD64 = Workload(
    "amd64",
    EM_X86_64,
    0x1000000,
    bytes.fromhex(
        "53"  # push %rbx
        "4883ec10"  # sub $16,%rsp
        "31db"  # 1: xor %ebx,%ebx
        "ff14df"  # 2: call *(%rdi,%rbx,8)
        "48ffc3"  # inc %rbx
        "4839f3"  # cmp %rsi,%rbx
        "72f5"  # jb 2b
        "48ffca"  # dec %rdx
        "75ee"  # jne 1b
        "4883c410"  # add $16,%rsp
        "5b"  # pop %rbx
        "c3"  # ret
    ),
    bytes.fromhex(
        "55"  # push %rbp
        "4889e5"  # mov %rsp,%rbp
        "48897df8"  # mov %rdi,-8(%rbp)
        "488b45f8"  # mov -8(%rbp),%rax
        "5d"  # pop %rbp
        "c3"  # ret
    ),
    b"\xcc",
)
ARM64 = Workload(
    "arm64",
    EM_AARCH64,
    0x42000000,
    _words(
        0xA9BF7BFD,  # stp x29,x30,[sp,#-16]!
        0xD2800003,  # 1: mov x3,#0
        0xF8637804,  # 2: ldr x4,[x0,x3,lsl #3]
        0xD63F0080,  # blr x4
        0x91000463,  # add x3,x3,#1
        0xEB01007F,  # cmp x3,x1
        0x54FFFF83,  # b.lo 2b
        0xF1000442,  # subs x2,x2,#1
        0x54FFFF21,  # b.ne 1b
        0xA8C17BFD,  # ldp x29,x30,[sp],#16
        0xD65F03C0,  # ret
    ),
    _words(
        0xA9BE7BFD,  # stp x29,x30,[sp,#-32]!
        0x910003FD,  # mov x29,sp
        0xF9000FE0,  # str x0,[sp,#24]
        0xF9400FE5,  # ldr x5,[sp,#24]
        0xA8C27BFD,  # ldp x29,x30,[sp],#32
        0xD65F03C0,  # ret
    ),
    _words(0xD503201F),
)
RISCV64 = Workload(
    "riscv64",
    EM_RISCV,
    0x80000000,
    _words(
        0xFF010113,  # addi sp,sp,-16
        0x00113423,  # sd ra,8(sp)
        0x00050293,  # 1: mv t0,a0
        0x00359313,  # slli t1,a1,3
        0x00A30333,  # add t1,t1,a0
        0x0002B383,  # 2: ld t2,0(t0)
        0x000380E7,  # jalr t2
        0x00828293,  # addi t0,t0,8
        0xFE62EAE3,  # bltu t0,t1,2b
        0xFFF60613,  # addi a2,a2,-1
        0xFE0610E3,  # bnez a2,1b
        0x00813083,  # ld ra,8(sp)
        0x01010113,  # addi sp,sp,16
        0x00008067,  # ret
    ),
    _words(
        0xFE010113,  # addi sp,sp,-32
        0x00113C23,  # sd ra,24(sp)
        0x00A13423,  # sd a0,8(sp)
        0x00813783,  # ld a5,8(sp)
        0x01813083,  # ld ra,24(sp)
        0x02010113,  # addi sp,sp,32
        0x00008067,  # ret
    ),
    _words(0x00000013),
)
WORKLOADS = (AMD64, ARM64, RISCV64)
