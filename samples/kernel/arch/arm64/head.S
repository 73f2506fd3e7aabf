/*
 * arm64: where CPU 0 starts and where PSCI starts the others, the vectors, and the loads and stores that may fault.
 * All of it at EL1, at the addresses the kernel is linked to.
 */
#include "config.h"

#define FRAME_SIZE 288 /* struct trapframe of arch.h */

/* Translation: one table of 1 GiB blocks, each address for itself. Devices are in the first block, RAM in the second. */
#define BLOCK_DEVICE 0x0060000000000401 /* valid block, accessed, attributes 0, never executed */
#define BLOCK_RAM    0x0000000040000705 /* valid block, accessed, attributes 1, inner shareable */
#define MAIR         0xff04             /* attributes 0: device-nGnRE, 1: normal memory, write-back */
#define TCR          0x0000000100803519 /* 39-bit addresses, 4 KiB granule, cached walks, no TTBR1, 36 bits physical */
#define SCTLR_M_C_I  0x1005

.macro function name
    .globl  \name
    .type   \name, %function
    .balign 4
\name:
.endm

.macro end name
    .size   \name, . - \name
.endm

    .section .text.head, "ax", %progbits
function _start
    msr     daifset, #15
    adrp    x0, translation_table
    ldr     x1, =BLOCK_DEVICE
    ldr     x2, =BLOCK_RAM
    stp     x1, x2, [x0]
    dsb     sy
    mov     x19, xzr
    bl      enter
    b       machine_start
end _start

/* From PSCI CPU_ON, with the CPU's number in x0. */
function secondary_start
    msr     daifset, #15
    mov     x19, x0
    bl      enter
    mov     x0, x19
    b       cpu_main
end secondary_start

/* Exclusives are only promised to work on cached memory, so the MMU goes on before the first lock. x19: CPU number. */
function enter
    adr     x0, vectors
    msr     vbar_el1, x0
    adrp    x0, translation_table
    msr     ttbr0_el1, x0
    mov     x0, #MAIR
    msr     mair_el1, x0
    ldr     x0, =TCR
    msr     tcr_el1, x0
    tlbi    vmalle1
    dsb     nsh
    isb
    mrs     x0, sctlr_el1
    mov     x1, #SCTLR_M_C_I
    orr     x0, x0, x1
    msr     sctlr_el1, x0
    isb
    adrp    x0, cpu_stacks /* this CPU's: it grows down from the start of the next one's */
    add     x0, x0, :lo12:cpu_stacks
    add     x1, x19, #1
    add     x0, x0, x1, lsl #STACK_SHIFT
    mov     sp, x0
    mov     x29, xzr /* the end of the chain of frames */
    ret
end enter

    .ltorg

    .bss
    .balign 4096
translation_table:
    .skip   4096

    .text
/* Sixteen entries of 128 bytes. We only ever run at EL1 on SP_EL1: of those four, two are ours. */
.macro vector kind
    .balign 128
    sub     sp, sp, #FRAME_SIZE
    stp     x0, x1, [sp]
    mov     x1, #\kind
    b       trap_common
.endm

    .balign 2048
function vectors
    .irp    kind, 0,1,2,3, 4,5,6,7, 8,9,10,11, 12,13,14,15
    vector  \kind
    .endr
end vectors

.macro for_pairs operation /* x2 and x3 to x28 and x29 */
    .irp    n, 2,4,6,8,10,12,14,16,18,20,22,24,26,28
    pair    \operation, \n, %(\n + 1)
    .endr
.endm

.macro pair operation, first, second
    \operation x\first, x\second, [sp, #8 * \first]
.endm

function trap_common
    .altmacro
    for_pairs stp
    .noaltmacro
    add     x2, sp, #FRAME_SIZE
    mrs     x3, elr_el1
    mrs     x4, spsr_el1
    mrs     x5, esr_el1
    mrs     x6, far_el1
    stp     x30, x2, [sp, #8 * 30]
    stp     x3, x4, [sp, #8 * 32]
    stp     x5, x6, [sp, #8 * 34]
    mov     x0, sp
    bl      trap_handler
    ldp     x3, x4, [sp, #8 * 32]
    ldr     x30, [sp, #8 * 30]
    msr     elr_el1, x3
    msr     spsr_el1, x4
    .altmacro
    for_pairs ldp
    .noaltmacro
    ldp     x0, x1, [sp]
    add     sp, sp, #FRAME_SIZE
    eret
end trap_common

/* struct extable_entry: trap_fault finds the instruction, puts the error in x0 and goes on at the fixup. */
.macro extable instruction, fixup, error
    .pushsection __ex_table, "a", %progbits
    .balign 4
    .long   \instruction - ., \fixup - ., \error
    .popsection
.endm

function copyin_word /* (u64 *word, u64 address) */
1:  ldr     x2, [x1]
    str     x2, [x0]
    mov     x0, #0
2:  ret
    extable 1b, 2b, EFAULT
end copyin_word

function copyout_word /* (u64 word, u64 address) */
1:  str     x0, [x1]
    mov     x0, #0
2:  ret
    extable 1b, 2b, EFAULT
end copyout_word

/* u64 hypervisor_call(u64 function, u64 a1, u64 a2, u64 a3): PSCI on this board. */
function hypervisor_call
    hvc     #0
    ret
end hypervisor_call
