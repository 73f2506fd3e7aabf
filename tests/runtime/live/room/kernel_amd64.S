/* A little kernel that does with its page tables what Linux for amd64 does, in the same order and under the same names,
 * and that overwrites all RAM that it is told is free. It ends by ACPI, with QEMU's pc. With FIVE its tables have five
 * levels.
 */

#ifdef FIVE
#define CR4     0x1020
#define IDENTITY identity4
#define KERNEL  level4
#define USER    user_level4
#else
#define CR4     0x20
#define IDENTITY identity3
#define KERNEL  level3
#define USER    user_level3
#endif

        .set    HIGH, 0xffffffff80000000
        .set    P, 1
        .set    W, 2
        .set    PS, 0x80

        .section .note.pvh, "a", @note
        .long   4, 4, 18                        /* XEN_ELFNOTE_PHYS32_ENTRY */
        .asciz  "Xen"
        .long   pvh_start_xen - HIGH

        .macro  function name:req
        .globl  \name
        .type   \name, @function
        .balign 16
\name:
        .endm

        .macro  done name:req
        .size   \name, . - \name
        .endm

        /* A function that has nothing but an entry. */
        .macro  leaf name:req
        function \name
        movl    $1, %r10d
        movl    $2, %r11d
        ret
        done    \name
        .endm

        .section .head.text, "ax"
function startup_64
        movq    %rsi, %rbp
        leaq    top - HIGH, %rsp
        call    scrub
        leaq    level2 - HIGH, %rdi             /* what is not the kernel goes: __startup_64 */
        xorl    %ecx, %ecx
1:      movq    %rcx, %rax
        shlq    $21, %rax
        cmpq    $start - HIGH, %rax
        jb      2f
        cmpq    $end - HIGH, %rax
        jb      3f
2:      andq    $~P, (%rdi, %rcx, 8)
3:      incq    %rcx
        cmpq    $512, %rcx
        jb      1b
        movl    $early_root - HIGH, %eax
        movq    %rax, %cr3
        jmp     *go_on - HIGH
go_on:  .quad   secondary
        done    startup_64

        .code32
function pvh_start_xen
        movl    %ebx, %ebp
        movl    %cr4, %eax
        orl     $CR4, %eax
        movl    %eax, %cr4
        movl    $first_root - HIGH, %eax
        movl    %eax, %cr3
        movl    $0xc0000080, %ecx
        rdmsr
        orl     $0x100, %eax
        wrmsr
        movl    %cr0, %eax
        orl     $0x80000001, %eax
        movl    %eax, %cr0
        lgdt    descriptor - HIGH
        ljmp    $8, $long_mode - HIGH
        .code64
long_mode:
        leaq    top - HIGH, %rsp
        call    xen_prepare_pvh
        movl    $parameters - HIGH, %esi
        movl    $startup_64 - HIGH, %eax
        jmp     *%rax
        done    pvh_start_xen

/* The memory map of hvm_start_info, as an e820 table. */
function xen_prepare_pvh
        movl    %ebp, %ebp
        movq    40(%rbp), %rsi
        movl    48(%rbp), %ecx
        movl    $parameters - HIGH, %edi
        movb    %cl, 0x1e8(%rdi)
        addq    $0x2d0, %rdi
1:      movq    (%rsi), %rax
        movq    %rax, (%rdi)
        movq    8(%rsi), %rax
        movq    %rax, 8(%rdi)
        movl    16(%rsi), %eax
        movl    %eax, 16(%rdi)
        addq    $24, %rsi
        addq    $20, %rdi
        decl    %ecx
        jnz     1b
        ret
        done    xen_prepare_pvh

/* Overwrites RAM above the kernel. */
function scrub
        leaq    0x2d0(%rbp), %rsi
        movzbl  0x1e8(%rbp), %edx
1:      cmpl    $1, 16(%rsi)
        jne     3f
        movq    (%rsi), %rdi
        movq    8(%rsi), %rcx
        addq    %rdi, %rcx
        cmpq    $end - HIGH, %rcx
        jbe     3f
        cmpq    $end - HIGH, %rdi
        jae     2f
        movl    $end - HIGH, %edi
2:      subq    %rdi, %rcx
        shrq    $3, %rcx
        movl    $0xcccccccc, %eax
        rep stosq
3:      addq    $20, %rsi
        decl    %edx
        jnz     1b
        ret
        done    scrub

        .text
secondary:
        movq    $top, %rsp
        call    before_nx
        movl    $0xc0000080, %ecx
        rdmsr
        orl     $0x800, %eax
        wrmsr
        call    cleanup_highmap
        movl    $5, %ebx
1:      call    work
        decl    %ebx
        jnz     1b
        movq    %cr3, %rax
        movq    $last_root - HIGH, %rax
        movq    %rax, %cr3
        call    pti_init
        movq    $last_root - HIGH + 0x1000, %rax
        movq    %rax, %cr3
        call    error_entry
        movq    $last_root - HIGH, %rax
        movq    %rax, %cr3
        call    free_initmem
        call    ptdump
        testl   %eax, %eax
        jnz     2f
        call    passed
2:      movw    $0x604, %dx
        movw    $0x2000, %ax
        outw    %ax, %dx
3:      hlt
        jmp     3b

function cleanup_highmap
        xorl    %ebx, %ebx
1:      leaq    level2(, %rbx, 8), %rdi
        cmpq    $0, (%rdi)
        je      3f
        movq    %rbx, %rax
        shlq    $21, %rax
        cmpq    $start - HIGH, %rax
        jb      2f
        cmpq    $end - HIGH, %rax
        jb      3f
2:      call    set_pmd
3:      incl    %ebx
        cmpl    $512, %ebx
        jb      1b
        movq    %cr3, %rax
        movq    %rax, %cr3
        ret
        done    cleanup_highmap

function set_pmd
        movq    $0, (%rdi)
        ret
        done    set_pmd

/* The tables of user mode have the first 2 MiB of the kernel alone. */
function pti_init
        movq    level2 + 8 * 8, %rax
        movq    %rax, user_level2 + 8 * 8
        movq    $USER - HIGH + P + W, %rax
        movq    %rax, last_root + 0x1000 + 8 * 511
        ret
        done    pti_init

/* Whether an entry but the kernel's own may be both written and executed: ptdump_walk_pgd_level_checkwx. */
function ptdump
        xorl    %eax, %eax
        xorl    %ecx, %ecx
1:      movq    level2(, %rcx, 8), %rdx
        cmpq    $8, %rcx
        je      2f
        btq     $63, %rdx
        jc      2f
        andl    $P + W, %edx
        cmpl    $P + W, %edx
        jne     2f
        incl    %eax
2:      incl    %ecx
        cmpl    $512, %ecx
        jb      1b
        ret
        done    ptdump

        leaf    before_nx
        leaf    work
        leaf    error_entry
        leaf    free_initmem
        leaf    passed

        .data
        .balign 16
gdt:    .quad   0, 0x00af9a000000ffff, 0x00cf92000000ffff
descriptor:
        .word   . - gdt - 1
        .long   gdt - HIGH

        .macro  first table:req
        .quad   \table - HIGH + P + W
        .fill   511, 8, 0
        .endm

        .macro  last table:req
        .fill   511, 8, 0
        .quad   \table - HIGH + P + W
        .endm

        .macro  root
        .quad   IDENTITY - HIGH + P + W
        .fill   510, 8, 0
        .quad   KERNEL - HIGH + P + W
        .endm

        .balign 0x1000
first_root:
        root
early_root:
        root
        .balign 0x2000
last_root:
        root
        .fill   512, 8, 0
identity4:
        first   identity3
level4: last    level3
user_level4:
        last    user_level3
identity3:
        first   identity2
identity2:
        .set    at, 0
        .rept   512
        .quad   at + P + W + PS
        .set    at, at + 0x200000
        .endr
level3: .fill   510, 8, 0
        .quad   level2 - HIGH + P + W
        .quad   0
user_level3:
        .fill   510, 8, 0
        .quad   user_level2 - HIGH + P + W
        .quad   0
level2:
        .set    at, 0
        .rept   512
        .quad   at + P + W + PS
        .set    at, at + 0x200000
        .endr
user_level2:
        .fill   512, 8, 0
parameters:
        .fill   0x1000, 1, 0
        .fill   0x1000, 1, 0
top:
