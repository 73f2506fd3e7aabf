/*
 * amd64: from a loader to long mode. A multiboot 1 loader (GRUB) and a PVH one (QEMU's -kernel) both arrive at _start
 * in 32-bit protected mode without paging; secondary CPUs arrive in real mode at a page below 1 MiB that cpu_start
 * fills with a copy of ap_trampoline. This part of the kernel is linked at the address it is loaded to.
 */
#include "config.h"

#define KERNEL_OFFSET 0xffffffff80000000
#define PHYSICAL(symbol) ((symbol) - KERNEL_OFFSET)

#define MULTIBOOT_MAGIC 0x1badb002
#define XEN_ELFNOTE_PHYS32_ENTRY 18

#define CODE64 0x08
#define DATA   0x10
#define CODE32 0x18

#define CR0_PE   0x1
#define CR0_WP   0x10000
#define CR0_PG   0x80000000
#define CR4_PAE  0x20
#define MSR_EFER 0xc0000080
#define EFER_LME 0x100

#define TABLE    0x3   /* present, writable */
#define PAGE_2M  0x83
#define UNCACHED 0x10
#define LAPIC    0xfee00000

.macro function name
    .globl  \name
    .type   \name, @function
\name:
.endm

.macro end name
    .size   \name, . - \name
.endm

    .section .boot.header, "a", @progbits
    .balign 4
    .long   MULTIBOOT_MAGIC, 0, -MULTIBOOT_MAGIC

    .section .note.Xen, "a", @note
    .balign 4
    .long   4, 4, XEN_ELFNOTE_PHYS32_ENTRY
    .asciz  "Xen"
    .long   _start

/*
 * The tables: the first GiB is seen at 0, where the start code runs, and at KERNEL_OFFSET, where the kernel runs; the
 * local APIC's page follows that.
 */
    .bss
    .balign 4096
pml4:       .skip 4096
low:        .skip 4096
high:       .skip 4096
ram:        .skip 4096
devices:    .skip 4096

    .section .boot, "ax", @progbits
    .code32
function _start
    cli
    cld
    movl    $PHYSICAL(low) + TABLE, PHYSICAL(pml4)
    movl    $PHYSICAL(high) + TABLE, PHYSICAL(pml4) + 8 * 511
    movl    $PHYSICAL(ram) + TABLE, PHYSICAL(low)
    movl    $PHYSICAL(ram) + TABLE, PHYSICAL(high) + 8 * 510
    movl    $PHYSICAL(devices) + TABLE, PHYSICAL(high) + 8 * 511
    movl    $LAPIC + PAGE_2M + UNCACHED, PHYSICAL(devices)
    movl    $PHYSICAL(ram), %edi
    movl    $PAGE_2M, %eax
1:  movl    %eax, (%edi)
    addl    $8, %edi
    addl    $0x200000, %eax
    cmpl    $0x40000000, %eax
    jb      1b
    xorl    %esi, %esi /* CPU 0 */
    jmp     enter_long_mode
end _start

/* On all CPUs, with the CPU's number in %esi. */
function enter_long_mode
    movl    %cr4, %eax
    orl     $CR4_PAE, %eax
    movl    %eax, %cr4
    movl    $PHYSICAL(pml4), %eax
    movl    %eax, %cr3
    movl    $MSR_EFER, %ecx
    rdmsr
    orl     $EFER_LME, %eax
    wrmsr
    movl    %cr0, %eax
    orl     $CR0_PG | CR0_WP | CR0_PE, %eax
    movl    %eax, %cr0
    lgdt    gdt_pointer
    ljmp    $CODE64, $start64
end enter_long_mode

    .code64
function start64
    movl    $DATA, %eax
    movl    %eax, %ds
    movl    %eax, %es
    movl    %eax, %ss
    xorl    %eax, %eax
    movl    %eax, %fs
    movl    %eax, %gs
    movq    $start_high, %rax
    jmp     *%rax
end start64

    .balign 8
gdt:
    .quad   0
    .quad   0x00af9a000000ffff /* CODE64 */
    .quad   0x00cf92000000ffff /* DATA */
    .quad   0x00cf9a000000ffff /* CODE32 */
gdt_pointer:
    .word   gdt_pointer - gdt - 1
    .quad   gdt

/* Copied to the page that the start-up interrupt names: CS is that page / 16, IP 0. */
    .code16
    .globl  ap_trampoline, ap_trampoline_end, ap_number
ap_trampoline:
    cli
    movw    %cs, %ax
    movw    %ax, %ds
    lgdtl   ap_gdt_pointer - ap_trampoline
    movl    %cr0, %eax
    orl     $CR0_PE, %eax
    movl    %eax, %cr0
    ljmpl   $CODE32, $ap_start32
ap_gdt_pointer:
    .word   gdt_pointer - gdt - 1
    .long   gdt
ap_trampoline_end:

    .code32
function ap_start32
    movl    $DATA, %eax
    movl    %eax, %ds
    movl    ap_number, %esi
    jmp     enter_long_mode
end ap_start32

    .balign 4
ap_number:
    .long   0

/* From here on at the kernel's own addresses. CPU number in %esi. */
    .section .text.head, "ax", @progbits
    .code64
function start_high
    movl    %esi, %edi
    leal    1(%rdi), %eax /* this CPU's stack grows down from the start of the next one's */
    shll    $STACK_SHIFT, %eax
    leaq    cpu_stacks(%rax), %rsp
    xorl    %ebp, %ebp /* the end of the chain of frames */
    testl   %edi, %edi
    jnz     1f
    call    machine_start
1:  call    cpu_main
end start_high
