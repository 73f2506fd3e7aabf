/* Loops as drivers have them, one for each register from 0x20000000 on. A line of the console tells that one was left. */
#include <stdint.h>

#define REGISTER(n) (*(volatile uint32_t *)(0x20000000UL + 4 * (n)))
#define CALLED __attribute__((noinline, noclone))

static uint64_t now(void)
{
    uint64_t ticks;
#ifdef __aarch64__
    asm volatile("mrs %0, cntpct_el0" : "=r"(ticks));
#else
    asm volatile("rdtime %0" : "=r"(ticks));
#endif
    return ticks;
}

CALLED static void show(const char *text)
{
    while (*text)
        *(volatile uint32_t *)UART = (uint8_t)*text++;
}

CALLED static void delay(uint64_t ticks)
{
    uint64_t start = now();
    while (now() - start < ticks)
        ;
}

CALLED static void locked(void)
{
    REGISTER(0) = 0x123;
    while (!(REGISTER(0) & 1u << 31))
        ;
}

CALLED static void idle(void)
{
    REGISTER(1) = 0x41;
    while (REGISTER(1) & 1)
        ;
}

CALLED static void state(void)
{
    while ((REGISTER(2) & 0xf0) != 0x50)
        ;
}

CALLED static void both(void)
{
    while ((REGISTER(3) & 0x101) != 0x101)
        ;
}

CALLED static void identity(void)
{
    while (REGISTER(4) != 0x5afe1234)
        ;
}

CALLED static void counter(void)
{
    uint32_t start = REGISTER(5);
    while (REGISTER(5) - start < 5000)
        ;
    start = REGISTER(5);
    while (REGISTER(5) - start < 5000)
        ;
}

CALLED static void handshake(void)
{
    while (!(REGISTER(6) & 4))
        ;
    while (REGISTER(6) & 4)
        ;
    while (!(REGISTER(6) & 4))
        ;
}

/* A reset that clears itself, with a delay, and a time limit. */
CALLED static int reset(void)
{
    uint64_t start = now();
    REGISTER(7) = 0x80;
    while (REGISTER(7) & 0x80) {
        if (now() - start > TICKS)
            return -110;
        delay(TICKS / 1000);
    }
    return 0;
}

/* Bits of errors, which are tested first, and one that says that all is well. */
CALLED static int done(void)
{
    for (;;) {
        uint32_t status = REGISTER(8);
        if (status & 0x1e)
            return -5;
        if (status & 0x100)
            return 0;
    }
}

/* Idle when it was seen so three times. */
CALLED static int steady(void)
{
    int seen = 0, tries = 100000;
    while (tries--) {
        seen = REGISTER(9) & 2 ? seen + 1 : 0;
        if (seen == 3)
            return 0;
    }
    return -110;
}

/* No loop that waits: what it reads is data. */
CALLED static uint32_t data(void)
{
    uint32_t sum = 0;
    for (int word = 0; word < 400; word++)
        sum += REGISTER(10);
    return sum;
}

CALLED static void empty(void)
{
    REGISTER(11) = 0x15;
    while (REGISTER(11))
        ;
}

#ifdef MASK
void start(void)
{
    REGISTER(0) = WRITTEN;
    while ((REGISTER(0) & MASK) != VALUE)
        ;
    show("end\n");
    for (;;)
        ;
}
#else
void start(void)
{
    locked(), show("locked\n");
    idle(), show("idle\n");
    state(), show("state\n");
    both(), show("both\n");
    identity(), show("identity\n");
    counter(), show("counter\n");
    handshake(), show("handshake\n");
    show(reset() ? "no reset\n" : "reset\n");
    show(done() ? "an error\n" : "done\n");
    show(steady() ? "not steady\n" : "steady\n");
    show(data() ? "data\n" : "no data\n");
    empty(), show("empty\n");
    show("end\n");
    for (;;)
        ;
}
#endif

asm(".section .text.first, \"ax\"\n.globl _start\n_start:\n"
#ifdef __aarch64__
    "mov x0, #0x40800000\nmov sp, x0\nb start\n"
#else
    "li sp, 0x80800000\nj start\n"
#endif
    );
