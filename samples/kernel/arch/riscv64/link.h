/* Where the kernel lies: at the start of RAM, addressed as it is. */
#define KERNEL_LMA    0x80000000
#define KERNEL_OFFSET 0
