/* The layout of the image on all machines. link.h says where it lies and how far its addresses are from memory's. */
#include "link.h"

ENTRY(_start)

PHDRS
{
#ifdef KERNEL_BOOT
    boot PT_LOAD FLAGS(5);
#endif
    text PT_LOAD FLAGS(5);
    rodata PT_LOAD FLAGS(4);
    data PT_LOAD FLAGS(6);
    note PT_NOTE FLAGS(4);
    stack PT_GNU_STACK FLAGS(6);
}

SECTIONS
{
    . = KERNEL_LMA;
#ifdef KERNEL_BOOT
    /*
     * The multiboot header has to be in the first 8 KiB of the file. QEMU would refuse it for being in a 64-bit image
     * before it saw the PVH note, but it does not look into the last 48 bytes, and this is where they are.
     */
    .boot : { *(.boot) . = 0xfd0; KEEP(*(.boot.header)) } : boot
#endif
    . = ALIGN(4096);
    . += KERNEL_OFFSET;

    .text : AT(ADDR(.text) - KERNEL_OFFSET) { *(.text.head) *(.text .text.*) } : text

    . = ALIGN(4096);
    .rodata : AT(ADDR(.rodata) - KERNEL_OFFSET) { *(.rodata .rodata.* .srodata .srodata.*) } : rodata
    .stapsdt.base : AT(ADDR(.stapsdt.base) - KERNEL_OFFSET) { *(.stapsdt.base) } : rodata
    set_sdt_probes_set : AT(ADDR(set_sdt_probes_set) - KERNEL_OFFSET) { KEEP(*(set_sdt_probes_set)) } : rodata
    set_sdt_argtypes_set : AT(ADDR(set_sdt_argtypes_set) - KERNEL_OFFSET) { KEEP(*(set_sdt_argtypes_set)) } : rodata
    __ex_table : AT(ADDR(__ex_table) - KERNEL_OFFSET)
    {
        extable_start = .;
        KEEP(*(__ex_table))
        extable_end = .;
    } : rodata
    .note : AT(ADDR(.note) - KERNEL_OFFSET) { KEEP(*(.note.Xen)) *(.note.gnu.build-id) } : rodata : note

    . = ALIGN(4096);
    .data : AT(ADDR(.data) - KERNEL_OFFSET) { *(.data .data.* .sdata .sdata.*) } : data
    .bss : AT(ADDR(.bss) - KERNEL_OFFSET) { *(.sbss .sbss.*) *(.bss .bss.*) *(COMMON) } : data

    .note.stapsdt 0 : { KEEP(*(.note.stapsdt)) } : NONE

    /DISCARD/ : { *(.comment) *(.note.GNU-stack) *(.note.gnu.property) *(.riscv.attributes) }
}
