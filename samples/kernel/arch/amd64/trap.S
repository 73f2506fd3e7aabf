/* amd64: the stubs of the vectors, and the loads and stores that may fault. */
#include "config.h"

.macro function name
    .globl  \name
    .type   \name, @function
    .balign 16
\name:
.endm

.macro end name
    .size   \name, . - \name
.endm

    .text
/* Entries of 16 bytes. For some exceptions the CPU pushes an error code; for the others the stub does. */
function vectors
    .set    number, 0
    .rept   48
    .balign 16
    .if     (number != 8) && ((number < 10) || (number > 14)) && (number != 17) && (number != 21)
    pushq   $0
    .endif
    pushq   $number
    jmp     trap_common
    .set    number, number + 1
    .endr
end vectors

/* All traps come from this kernel: the same segments, the stack that was in use, which the CPU has aligned to 16. */
function trap_common
    .irp    register, rax,rbx,rcx,rdx,rsi,rdi,rbp,r8,r9,r10,r11,r12,r13,r14,r15
    pushq   %\register
    .endr
    cld
    movq    %rsp, %rdi
    call    trap_handler
    .irp    register, r15,r14,r13,r12,r11,r10,r9,r8,rbp,rdi,rsi,rdx,rcx,rbx,rax
    popq    %\register
    .endr
    addq    $16, %rsp /* vector and error code */
    iretq
end trap_common

/* struct extable_entry: trap_fault finds the instruction, puts the error in %rax and goes on at the fixup. */
.macro extable instruction, fixup, error
    .pushsection __ex_table, "a", @progbits
    .balign 4
    .long   \instruction - ., \fixup - ., \error
    .popsection
.endm

function copyin_word /* (u64 *word, u64 address) */
1:  movq    (%rsi), %rdx
    movq    %rdx, (%rdi)
    xorl    %eax, %eax
2:  ret
    extable 1b, 2b, EFAULT
end copyin_word

function copyout_word /* (u64 word, u64 address) */
1:  movq    %rdi, (%rsi)
    xorl    %eax, %eax
2:  ret
    extable 1b, 2b, EFAULT
end copyout_word
