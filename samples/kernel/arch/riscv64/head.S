/*
 * riscv64: where all harts start, the trap vector, and the loads and stores that may fault.
 * In: a0 hart number, a1 device tree.
 */
#include "config.h"

#define FRAME_SIZE 288 /* struct trapframe of arch.h */

.macro function name
    .globl  \name
    .type   \name, @function
    .balign 4
\name:
.endm

.macro end name
    .size   \name, . - \name
.endm

    .section .text.head, "ax", @progbits
function _start
    csrw    mie, zero
    csrci   mstatus, 8
    la      t0, trap_vector
    csrw    mtvec, t0
    li      t0, NCPU
    bgeu    a0, t0, park
    la      sp, cpu_stacks /* this hart's: it grows down from the start of the next one's */
    addi    t0, a0, 1
    slli    t0, t0, STACK_SHIFT
    add     sp, sp, t0
    li      s0, 0 /* the end of the chain of frames */
    bnez    a0, secondary
    mv      a0, a1
    tail    machine_start

secondary: /* waits for hart 0's software interrupt, which wakes wfi though interrupts are off */
    csrwi   mie, 8
1:  wfi
    csrr    t0, mip
    andi    t0, t0, 8
    beqz    t0, 1b
    tail    cpu_main

park:
    wfi
    j       park
end _start

    .text
/* All traps come here, from this kernel only: on the stack that was in use. */
function trap_vector
    addi    sp, sp, -FRAME_SIZE
    .irp    n, 1,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    sd      x\n, (\n - 1) * 8(sp)
    .endr
    addi    t0, sp, FRAME_SIZE
    sd      t0, 8(sp) /* sp is x2 */
    csrr    t0, mepc
    csrr    t1, mstatus
    csrr    t2, mcause
    csrr    t3, mtval
    sd      t0, 31 * 8(sp)
    sd      t1, 32 * 8(sp)
    sd      t2, 33 * 8(sp)
    sd      t3, 34 * 8(sp)
    mv      a0, sp
    call    trap_handler
    ld      t0, 31 * 8(sp)
    ld      t1, 32 * 8(sp)
    csrw    mepc, t0
    csrw    mstatus, t1
    .irp    n, 1,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    ld      x\n, (\n - 1) * 8(sp)
    .endr
    addi    sp, sp, FRAME_SIZE
    mret
end trap_vector

/* struct extable_entry: trap_fault finds the instruction, puts the error in a0 and goes on at the fixup. */
.macro extable instruction, fixup, error
    .pushsection __ex_table, "a", @progbits
    .balign 4
    .long   \instruction - ., \fixup - ., \error
    .popsection
.endm

function copyin_word /* (u64 *word, u64 address) */
1:  ld      t0, 0(a1)
    sd      t0, 0(a0)
    li      a0, 0
2:  ret
    extable 1b, 2b, EFAULT
end copyin_word

function copyout_word /* (u64 word, u64 address) */
1:  sd      a0, 0(a1)
    li      a0, 0
2:  ret
    extable 1b, 2b, EFAULT
end copyout_word
