/* Where the kernel lies: its start code at 1 MiB, addressed as it is; the rest behind it, addressed in the top 2 GiB. */
#define KERNEL_BOOT
#define KERNEL_LMA    0x100000
#define KERNEL_OFFSET 0xffffffff80000000
