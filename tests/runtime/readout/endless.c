/* A guest for QEMU's virt machine, riscv64, that never ends: it works a thousand times a second and sleeps in between. */
#define MTIMECMP (*(volatile unsigned long *)0x2004000)
#define MTIME (*(volatile unsigned long *)0x200bff8)
#define MILLISECOND 10000

static unsigned long stack[512] __attribute__((aligned(16)));

__attribute__((noinline)) unsigned long work(unsigned long n) {
    volatile unsigned long sum = 0;
    for (unsigned long at = 0; at < 20; at++)
        sum += at ^ n;
    return sum;
}

void spin(void) {
    asm volatile("csrs mie, %0" ::"r"(1 << 7)); /* the timer wakes it; interrupts are off */
    for (unsigned long n = 0;; n++) {
        work(n);
        MTIMECMP = MTIME + MILLISECOND;
        asm volatile("wfi");
    }
}

__attribute__((naked)) void _start(void) {
    asm volatile("mv sp, %0; j spin" ::"r"(stack + 512));
}
