"""Guests that mean harm, in assembly: a table of what each does and what kinst-run must say when its run is over.

Every one starts as an image does: amd64 in 64-bit mode with 4 GiB mapped and no descriptor tables of its own, arm64 in
EL1 and riscv64 in M mode, both without translation.
"""

from dataclasses import dataclass
from typing import Final

GOES_ON: Final = r"wall-timeout: CPU 0 (runs|waits for an interrupt) at 0x"  # for as long as it is let
_LOST: Final = r"CPU 0 at 0x0: fetch of 0x0, code 0x1 again and again in its own handler"  # riscv64 without a handler
_STRAY: Final = r"CPU 0 at 0x200: an undefined instruction again and again in its own handler"  # arm64 likewise


@dataclass(frozen=True, slots=True)
class Guest:
    """What it is about, its machine and program, and how the first line that is told of it begins."""

    name: str
    machine: str
    program: str
    says: str = GOES_ON
    options: tuple[str, ...] = ()


# -- amd64: what most need, a flat GDT, and an IDT of which every gate leads to the label `handler` -------------------

_TABLES: Final = """
        lgdt gdt_pointer(%rip); push $8; lea 1f(%rip), %rax; push %rax; lretq
    1:  mov $0x10, %eax; mov %eax, %ss; mov $0x400000, %rdi; lea handler(%rip), %rax; mov $256, %ecx
    2:  mov %ax, (%rdi); movw $8, 2(%rdi); movw $0x8e00, 4(%rdi); mov %rax, %rbx; shr $16, %rbx; mov %bx, 6(%rdi)
        shr $16, %rbx; mov %ebx, 8(%rdi); movl $0, 12(%rdi); add $16, %rdi; loop 2b
        lidt idt_pointer(%rip); jmp program
        .balign 8
    gdt: .quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff, 0x00cff3000000ffff, 0x00affb000000ffff
    gdt_pointer: .word 39; .quad gdt
    idt_pointer: .word 0xfff; .quad 0x400000
    program:
"""
_AGAIN: Final = "handler: mov $0x300000, %rsp; jmp again"
_NEXT: Final = "imul $0x19660d, %r9d; add $0x3c6ef35f, %r9d; "  # a random number after the other
_EVERY: Final = ("-qn", "kinst:::{ @ = count(); } END { clear(@); }")


def _storm(what: str) -> str:
    return f"{_TABLES} again: {_NEXT} {what}; jmp again; {_AGAIN}"


def _map_all(table: int, entry: int) -> str:
    return f"mov ${table:#x}, %rdi; mov ${entry:#x}, %rax; mov $512, %ecx; rep stosq; "


_TO_CR3: Final = "mov $0x300000, %rax; mov %rax, %cr3; "
_PICS: Final = "".join(
    f"mov ${value}, %al; out %al, ${port}; "
    for port, value in ((0x43, 0x34), (0x40, 1), (0x40, 0), (0x20, 17), (0x21, 32), (0x21, 4), (0x21, 1), (0x21, 0))
)
# The last 2 MiB of virtual memory, at 0x400000.
_LAST_PAGE: Final = (
    "mov %cr3, %rax; movq $0x301003, 0xff8(%rax); movq $0x302003, 0x301ff8; movq $0x400083, 0x302ff8; mov %rax, %cr3; "
)


def _last_breakpoint(back: int) -> str:
    """Jumps to an int3 so many bytes before the end of virtual memory."""
    return f"{_LAST_PAGE} movb $0xcc, {0x60_0000 - back:#x}; mov ${-back}, %rax; jmp *%rax"


_AMD64: Final = (
    Guest("tables-nowhere", "amd64", "mov $0x7ffffffff000, %rax; mov %rax, %cr3; nop", "no RAM at 0xfffffff000"),
    Guest("tables-in-a-device", "amd64", "mov $0xfee00000, %rax; mov %rax, %cr3; nop", "no RAM at 0xfee00000"),
    Guest(
        "tables-of-themselves",
        "amd64",
        _map_all(0x300000, 0x300003) + _TO_CR3 + "mov $0x12345678, %rax; mov (%rax), %rbx",
        r"no RAM at 0x\w+, where the guest has a translation table",
    ),
    Guest(
        "everything-onto-everything",
        "amd64",
        _map_all(0x300000, 0x301003)
        + _map_all(0x301000, 0x83)
        + _TO_CR3
        + "1: add $0x40000000, %rbx; mov %rbx, %rax; shl $16, %rax; sar $16, %rax; mov (%rax), %rcx; jmp 1b",
    ),
    Guest(
        "reserved-bits",
        "amd64",
        _map_all(0x300000, -1 & (1 << 64) - 1) + _TO_CR3 + "nop",
        "CPU 0 at 0x20.*: fetch of 0x20.*, code 0x9, which cannot be delivered",
    ),
    Guest("control-registers", "amd64", _storm("mov %r9, %cr4; mov %r9, %cr8; mov %r9, %dr7; mov %r9, %dr0")),
    Guest("modes", "amd64", _storm("mov %r9d, %eax; or $0x80000001, %eax; mov %rax, %cr0")),
    Guest("no-protection", "amd64", "xor %eax, %eax; mov %rax, %cr0; 1: jmp 1b"),
    Guest("model-specific", "amd64", _storm("lea 0xc0000000(%r8d), %ecx; inc %r8b; rdmsr; not %eax; wrmsr")),
    Guest("selectors", "amd64", _storm("mov %r9d, %ds; mov %r9d, %fs; mov %r9d, %ss; lldt %r9w; ltr %r9w; verr %r9w")),
    Guest(
        "returns", "amd64", _storm("push $16; push %rsp; push %r9; push $8; lea again(%rip), %rax; push %rax; iretq")
    ),
    Guest("gates-in-a-device", "amd64", "lidt 9f(%rip); int3; 9: .word 0xffff; .quad 0xfee00000", "CPU 0 at 0x2.*#BP"),
    Guest("no-gate-for-a-call", "amd64", "syscall", r"CPU 0 at 0x200000: exception 6 \(#UD\), which cannot be"),
    Guest("handler-faults", "amd64", _TABLES + "ud2; handler: ud2", r"CPU 0 at 0x\w+: exception 6 \(#UD\) again and"),
    Guest("stack-in-a-device", "amd64", _TABLES + "mov $0xfee00200, %rsp; handler: mov $0xd0001000, %rsp; int3"),
    Guest("handlers-never-return", "amd64", _storm("mov $0x10000000000, %r8; mov (%r8), %rax"), "", _EVERY),
    Guest(
        "executes-a-device",
        "amd64",
        "mov $0xfee00000, %rax; jmp *%rax",
        r"CPU 0 at 0xfee00000: exception 6 \(#UD\) where there is no memory, which cannot be delivered",
    ),
    Guest(
        "executes-past-memory",
        "amd64",
        "mov $0x8000000 - 1, %rax; movb $0x90, (%rax); jmp *%rax",
        r"CPU 0 at 0x8000000: exception 6 \(#UD\) where there is no memory, which cannot be delivered",
    ),
    Guest(
        "locked-device",
        "amd64",
        "mov $0xfee00080, %rbx; 1: lock xadd %eax, (%rbx); lock cmpxchg8b (%rbx); lock cmpxchg16b (%rbx); "
        "lock incl 0xf7f(%rbx); mov %cr4, %rax; or $0x600, %rax; mov %rax, %cr4; movups %xmm0, 3(%rbx); "
        "fxsave (%rbx); jmp 1b",
    ),
    Guest("breakpoint-in-the-last-byte", "amd64", _last_breakpoint(1), r"CPU 0 at 0x0: exception 3 \(#BP\)"),
    Guest("breakpoint-in-the-last-byte-probed", "amd64", _last_breakpoint(1), r"CPU 0 at 0x0: ex", _EVERY),
    Guest("breakpoint-before-the-last-byte", "amd64", _last_breakpoint(2), r"CPU 0 at 0xf{16}: exception 3"),
    Guest("endless-string", "amd64", "mov $-1, %rcx; mov $0x300000, %rdi; rep stosb; 1: jmp 1b"),
    Guest("endless-string-probed", "amd64", "mov $-1, %rcx; mov $0x3f8, %dx; rep outsb", "", _EVERY),
    Guest("flood", "amd64", "mov $0x3f8, %dx; 1: outb %al, %dx; inc %al; jmp 1b"),
    Guest("flood-without-a-line", "amd64", "mov $0x3f8, %dx; 1: outb %al, %dx; jmp 1b", options=("--until", "never")),
    Guest(
        "line-that-takes-for-ever",
        "amd64",
        "mov $0x3f8, %dx; 1: mov $60, %ecx; mov $0x61, %al; 2: outb %al, %dx; loop 2b; mov $10, %al; outb %al, %dx; "
        "jmp 1b",
        options=("--until", "(a+)+b"),
    ),
    Guest(
        "every-port",
        "amd64",
        "mov $0x12345678, %eax; 1: inc %dx; cmp $0xf0, %dl; jae 1b; cmp $0x5f, %dl; jb 2f; cmp $0x65, %dl; jb 1b; "
        "2: cmp $6, %dh; je 1b; cmp $0xc, %dh; je 1b; out %eax, %dx; in %dx, %ax; out %al, %dx; ror %eax; jmp 1b",
    ),
    Guest(
        "timer-of-one-count",
        "amd64",
        f"{_TABLES} {_PICS} sti; 1: hlt; jmp 1b; handler: mov $0x20, %al; out %al, $0x20; iretq",
    ),
    Guest("interrupts-itself", "amd64", _storm("mov $0xfee00300, %rbx; movl $0x40400, (%rbx)")),
    Guest(
        "timer-undelivered",
        "amd64",
        f"{_PICS} sti; 1: jmp 1b",
        r"CPU 0 at 0x\w+: vector 0x20, which cannot be delivered",
    ),
    Guest("sixteen-prefixes", "amd64", ".fill 100, 1, 0x66; nop", "CPU 0 at 0x200000: exception 13"),
    Guest("writes-over-itself", "amd64", "lea 1f(%rip), %rbx; 1: nop; incb (%rbx); decb (%rbx); jmp 1b", "", _EVERY),
    Guest("halts-for-good", "amd64", "cli; hlt", "the guest stopped for good: every CPU is in hlt with interrupts off"),
)

# -- arm64 ------------------------------------------------------------------------------------------------------------

_TRANSLATE: Final = """
    ldr x0, =0x500100010; msr tcr_el1, x0; mov x0, #0xff; msr mair_el1, x0
    mrs x0, sctlr_el1; orr x0, x0, #1; msr sctlr_el1, x0; isb
"""
_FILL: Final = "1: str x2, [x1], #8; subs x3, x3, #1; b.ne 1b; "
_VECTORS: Final = "; .balign 2048; vectors: .fill 128, 4, 0xd503201f; "
_SKIP: Final = _VECTORS + "mrs x7, elr_el1; add x7, x7, #4; msr elr_el1, x7; eret"


def _words(first: int, count: int) -> str:
    """Instructions of which each differs from the one before in bit 5."""
    return f".set i, 0; .rept {count}; .inst {first:#x} + (i << 5); .set i, i + 1; .endr; "


def _every_register(base: int) -> str:
    return (
        f"ldr x0, ={base:#x}; again: mov x5, #0; 1: strb w5, [x0, x5]; and x6, x5, #~3; str w5, [x0, x6]; "
        "ldr w1, [x0, x6]; strh w5, [x0, x6]; add x5, x5, #1; cmp x5, #0x1000; b.ne 1b; b again"
    )


_ARM64: Final = (
    Guest("tables-nowhere", "arm64", "ldr x0, =0x123456789000; msr ttbr0_el1, x0;" + _TRANSLATE, "no RAM at 0x123456"),
    Guest("tables-in-a-device", "arm64", "mov x0, #0x9000000; msr ttbr0_el1, x0;" + _TRANSLATE, "no RAM at 0x9000000"),
    Guest(
        "garbage-everywhere",
        "arm64",
        "mov x0, #-1; msr ttbr0_el1, x0; msr tcr_el1, x0; msr sctlr_el1, x0; isb",
        "CPU 0",
    ),
    Guest(
        "everything-onto-everything",
        "arm64",
        "ldr x1, =0x40300000; msr ttbr0_el1, x1; ldr x2, =0x40301703; mov x3, #512;"
        + _FILL
        + "ldr x2, =0x40000701; mov x3, #512;"
        + _FILL
        + _TRANSLATE
        + "mov x5, #0; mov x7, #0x200000; 2: add x5, x5, x7; and x6, x5, #0x7fffffffff; ldr x8, [x6]; b 2b",
        r"CPU 0|wall-timeout",
    ),
    Guest("executes-a-device", "arm64", "mov x0, #0x9000000; br x0", _STRAY),
    Guest("executes-past-memory", "arm64", "ldr x0, =0x47fffffc; ldr w1, =0xd503201f; str w1, [x0]; br x0", _STRAY),
    Guest(
        "vectors-in-a-device", "arm64", "mov x0, #0x9000000; msr vbar_el1, x0; svc #0", "CPU 0 at 0x9000200: fetch of"
    ),
    Guest(
        "exclusive-device",
        "arm64",
        "mov x0, #0x8000000; 1: ldxr w1, [x0]; stxr w2, w1, [x0]; ldaxp x1, x3, [x0]; stlxp w2, x1, x3, [x0]; b 1b",
    ),
    Guest("exclusive-unaligned", "arm64", "ldr x0, =0x40300fff; ldxr x1, [x0]", _STRAY),
    Guest("zeroes-a-device", "arm64", "mov x0, #0x9000000; 1: dc zva, x0; dc ivac, x0; ic ivau, x0; b 1b"),
    Guest("uart-at-random", "arm64", "adr x7, vectors; msr vbar_el1, x7;" + _every_register(0x900_0000) + _SKIP),
    Guest("gic-at-random", "arm64", "adr x7, vectors; msr vbar_el1, x7;" + _every_register(0x800_0000) + _SKIP),
    Guest("virtio-at-random", "arm64", "adr x7, vectors; msr vbar_el1, x7;" + _every_register(0xA00_0000) + _SKIP),
    Guest("flash-at-random", "arm64", "adr x7, vectors; msr vbar_el1, x7;" + _every_register(0x400_0000) + _SKIP),
    Guest(
        "direct-memory-access",
        "arm64",
        "ldr x0, =0x09020010; mov x5, #-1; 1: str x5, [x0]; ldr x6, =0x40200000; rev x7, x6; str x7, [x0]; "
        "ror x5, x5, #3; b 1b",
    ),
    Guest(
        "timers",
        "arm64",
        "mov x0, #-1; mov x1, #1; msr cntp_cval_el0, x0; msr cntp_ctl_el0, x1; mov x0, #0x80000000; "
        "msr cntv_tval_el0, x0; "
        "msr cntv_ctl_el0, x1; msr cntv_cval_el0, x0; 1: wfi; b 1b",
        "the guest gave up",
    ),
    Guest(
        "reads-every-register",
        "arm64",
        "adr x7, vectors; msr vbar_el1, x7;" + _words(0xD538_0000, 2048) + "b ." + _SKIP,
    ),
    Guest("writes-every-register", "arm64", "mov x0, #-1;" + _words(0xD518_0000, 1536), "CPU 0"),
    Guest(
        "maintains-everything",
        "arm64",
        "adr x7, vectors; msr vbar_el1, x7;" + _words(0xD508_0000, 16384) + "b ." + _SKIP,
    ),
    Guest("returns-to-el3", "arm64", "mov x0, #0x3cd; msr spsr_el1, x0; adr x1, 1f; msr elr_el1, x1; eret; 1: b 1b"),
    Guest("returns-to-32-bit", "arm64", "mov x0, #0x1d3; msr spsr_el1, x0; adr x1, 1f; msr elr_el1, x1; eret; 1: b 1b"),
    Guest(
        "big-endian",
        "arm64",
        "mrs x1, sctlr_el1; orr x1, x1, #0x2000000; msr sctlr_el1, x1; isb; ldr x1, [x1]",
        "CPU 0",
    ),
    Guest(
        "breakpoint-register",
        "arm64",
        "adr x0, 1f; msr dbgbvr0_el1, x0; mov x1, #0x1e7; msr dbgbcr0_el1, x1; "
        "mov x2, #0xa000; msr mdscr_el1, x2; msr oslar_el1, xzr; msr daifclr, #8; 1: nop; b 1b",
        "CPU 0 at 0x200: an undefined instruction again and again in its own handler",
    ),
    Guest("calls-firmware", "arm64", "1: ldr x0, =0xc4000003; mov x2, #-1; hvc #0; add x1, x1, #1; b 1b"),
    Guest(
        "handlers-never-return",
        "arm64",
        "adr x0, vectors; msr vbar_el1, x0; mov x8, #0x10000000000; "
        "again: ldr x1, [x8]; b again" + _VECTORS + "b again",
        "",
        _EVERY,
    ),
    Guest("flood", "arm64", "mov x0, #0x9000000; 1: str w1, [x0]; add w1, w1, #1; b 1b"),
)

# -- riscv64 ----------------------------------------------------------------------------------------------------------

_SKIPPING: Final = "; .balign 4; trap: csrr t1, mepc; addi t1, t1, 4; csrw mepc, t1; mret"
_TO_SUPERVISOR: Final = (
    "la t0, 1f; csrw mepc, t0; li t0, 0x1000; csrc mstatus, t0; li t0, 0x800; csrs mstatus, t0; li t0, -1; "
    "csrw pmpaddr0, t0; li t0, 31; csrw pmpcfg0, t0; mret; .balign 4; 1: "
)


def _at_random(base: int, mask: int) -> str:
    return (
        f"la t0, trap; csrw mtvec, t0; li a0, {base:#x}; li s0, 0x19660d; li s1, 0x3c6ef35f; li s2, {mask:#x}; "
        "1: mulw a1, a1, s0; addw a1, a1, s1; srliw a2, a1, 3; and a2, a2, s2; add a3, a0, a2; sb a1, (a3); "
        "lbu a4, (a3); "
        "andi a3, a3, ~3; sw a1, (a3); lw a4, (a3); andi a3, a3, ~7; sd a1, (a3); ld a4, (a3); j 1b" + _SKIPPING
    )


def _csrs(kind: int) -> str:
    each = f".insn i 0x73, {kind}, t3, t2, i - ((i & 0x800) << 1)"
    return f".set i, 0; .rept 4096; .if i != 0x305; {each}; .endif; .set i, i + 1; .endr; j ."


def _chains(size: int) -> str:
    """To the second console: chains of all descriptors that there are, each of the same bytes; and again, as soon as
    the device has stopped."""
    return (
        "li a0, 0x10009000; li t1, 3; 1: li t2, 0x1000; sub a0, a0, t2; lw t0, 8(a0); bne t0, t1, 1b; "
        "again: sw zero, 0x70(a0); sw t1, 0x70(a0); li t0, 1; sw t0, 0x24(a0); sw t0, 0x20(a0); li t0, 11; "
        "sw t0, 0x70(a0); li t0, 1; sw t0, 0x30(a0); li t0, 128; sw t0, 0x38(a0); li a1, 0x80100000; sw a1, 0x80(a0); "
        "li a2, 0x80101000; sw a2, 0x90(a0); li a3, 0x80102000; sw a3, 0xa0(a0); li t0, 1; sw t0, 0x44(a0); "
        f"li t0, 15; sw t0, 0x70(a0); li t2, 0x80000000; li t3, {size:#x} | 1 << 32; li t4, 1; slli t4, t4, 48; "
        "li t5, 128; 2: sd t2, (a1); add t6, t3, t4; sd t6, 8(a1); addi a1, a1, 16; li t6, 1; slli t6, t6, 48; "
        "add t4, t4, t6; addi t5, t5, -1; bnez t5, 2b; sw zero, -4(a1); li t0, 0x800000; sw t0, (a2); li t0, 1; "
        "sw t0, 0x50(a0); li t1, 3; 3: lw t0, 0x70(a0); andi t0, t0, 64; beqz t0, 3b; j again"
    )


_PRINTS: Final = ("--virtio-console", "--console", "/dev/null")
_RISCV64: Final = (
    Guest(
        "tables-nowhere",
        "riscv64",
        _TO_SUPERVISOR + "li t0, (8 << 60) | 0x12345678; csrw satp, t0; sfence.vma",
        "no RAM at 0x",
    ),
    Guest(
        "tables-in-a-device",
        "riscv64",
        _TO_SUPERVISOR + "li t0, (9 << 60) | 0x10000; csrw satp, t0; sfence.vma",
        "no RAM at 0x1",
    ),
    Guest(
        "everything-onto-everything",
        "riscv64",
        "li a0, 0x80300000; li a1, 0x200000cf; li a2, 512; 2: sd a1, (a0); addi a0, a0, 8; addi a2, a2, -1; "
        "bnez a2, 2b;"
        + _TO_SUPERVISOR
        + "li t0, (8 << 60) | 0x80300; csrw satp, t0; 3: add a5, a5, a1; srli a6, a5, 26; ld a4, (a6); j 3b",
        "CPU 0|wall-timeout",
    ),
    Guest("executes-a-device", "riscv64", "li t0, 0x10000000; jr t0", _LOST),
    Guest("executes-past-memory", "riscv64", "li t0, 0x87fffffc; li t1, 0x13; sw t1, (t0); jr t0", _LOST),
    Guest(
        "vectors-in-a-device", "riscv64", "li t0, 0x10000000; csrw mtvec, t0; ecall", "CPU 0 at 0x10000000: fetch of"
    ),
    Guest(
        "atomic-device",
        "riscv64",
        "la t0, trap; csrw mtvec, t0; li a0, 0x10000000; 1: amoadd.w a1, a2, (a0); "
        "amoswap.d a1, a2, (a0); lr.d a1, (a0); sc.d a1, a2, (a0); lr.w a1, (a0); sc.w a1, a2, (a0); j 1b" + _SKIPPING,
    ),
    Guest(
        "floating-device",
        "riscv64",
        "la t0, trap; csrw mtvec, t0; li a0, 0x2000000; li t0, 0x6000; csrs mstatus, t0; "
        "1: fld fa0, (a0); fsd fa0, 3(a0); ld a1, 1(a0); j 1b" + _SKIPPING,
    ),
    Guest("uart-at-random", "riscv64", _at_random(0x1000_0000, 0xFF)),
    Guest("clint-at-random", "riscv64", _at_random(0x200_0000, 0xFFFF)),
    Guest("plic-at-random", "riscv64", _at_random(0xC00_0000, 0x5F_FFFF)),
    Guest("virtio-at-random", "riscv64", _at_random(0x1000_1000, 0x7FFF)),
    Guest("fw-cfg-at-random", "riscv64", _at_random(0x1010_0000, 0x1F)),
    Guest("flash-at-random", "riscv64", _at_random(0x2000_0000, 0x3FF_FFFF)),
    Guest("console-of-gigabytes", "riscv64", _chains(0x1FF_FFFF), options=_PRINTS),
    Guest("pci-at-random", "riscv64", _at_random(0x3000_0000, 0xFFF_FFFF)),
    Guest("clock-at-random", "riscv64", _at_random(0x10_1000, 0xFF)),
    Guest(
        "timer-of-never",
        "riscv64",
        "li t0, 0x2004000; li t1, -1; srli t1, t1, 1; sd t1, (t0); li t1, 0x80; csrs mie, t1; 1: wfi; j 1b",
    ),
    Guest(
        "timer-of-always",
        "riscv64",
        "la t0, 2f; csrw mtvec, t0; li t1, 0x80; csrs mie, t1; li t0, 0x2004000; "
        "sd zero, (t0); csrsi mstatus, 8; 1: j 1b; .balign 4; 2: mret",
    ),
    Guest(
        "writes-every-register",
        "riscv64",
        "la t0, trap; csrw mtvec, t0; li t2, -1;" + _csrs(1) + _SKIPPING,
        "CPU 0|wall",
    ),
    Guest("reads-every-register", "riscv64", "la t0, trap; csrw mtvec, t0;" + _csrs(2).replace("t2", "x0") + _SKIPPING),
    Guest("returns-to-nowhere", "riscv64", "li t0, -1; csrw mepc, t0; mret", _LOST),
    Guest(
        "returns-to-no-mode",
        "riscv64",
        "li t0, 0x800; csrc mstatus, t0; li t0, 0x1000; csrs mstatus, t0; la t0, 1f; csrw mepc, t0; mret; 1: j 1b",
        "CPU 0|wall",
    ),
    Guest(
        "delegates-everything",
        "riscv64",
        "li t0, -1; csrw medeleg, t0; csrw mideleg, t0;" + _TO_SUPERVISOR + "ecall",
        _LOST,
    ),
    Guest(
        "protects-everything",
        "riscv64",
        "li t0, -1; csrw pmpaddr0, t0; li t0, 0x98; csrw pmpcfg0, t0; nop; 1: j 1b",
        "CPU|wall",
    ),
    Guest(
        "handlers-never-return",
        "riscv64",
        "la t0, 2f; csrw mtvec, t0; li a0, -8; 1: ld a1, (a0); j 1b; .balign 4; 2: j 1b",
        "",
        _EVERY,
    ),
    Guest(
        "ebreak-for-ever",
        "riscv64",
        "la t0, 1f; csrw mtvec, t0; .balign 4; 1: ebreak",
        "CPU 0 at 0x8.*: ebreak again and",
    ),
)

GUESTS: Final = (*_AMD64, *_ARM64, *_RISCV64)
