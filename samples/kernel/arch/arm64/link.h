/* Where the kernel lies: in RAM behind the device tree, addressed as it is. */
#define KERNEL_LMA    0x40080000
#define KERNEL_OFFSET 0
