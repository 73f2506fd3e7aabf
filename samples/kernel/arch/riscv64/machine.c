/* riscv64: QEMU's "virt" board. UART, CLINT, test finisher, device tree, and the causes of traps. */
#include "callout.h"
#include "cpu.h"
#include "trap.h"

#define UART     0x10000000ul /* 16550, registers a byte apart */
#define CLINT    0x02000000ul
#define MSIP(n)  (CLINT + 4 * (n))
#define MTIMECMP (CLINT + 0x4000) /* of hart 0 */
#define MTIME    (CLINT + 0xbff8)
#define FINISHER 0x00100000ul
#define TIMEBASE 10000000 /* Hz of mtime */

#define UART_LSR      5
#define UART_LSR_THRE 0x20
#define FINISHER_PASS 0x5555

#define CAUSE_INTERRUPT  (1ul << 63)
#define CAUSE_TIMER      (CAUSE_INTERRUPT | 7)
#define CAUSE_BREAKPOINT 3
#define CAUSE_LOAD       5
#define CAUSE_STORE      7
#define MIE_TIMER        0x80ul

#define REG8(address)  (*(volatile u8 *)(address))
#define REG32(address) (*(volatile u32 *)(address))
#define REG64(address) (*(volatile u64 *)(address))

static void console_init(void)
{
    static const u8 setup[][2] = {
        {1, 0x00}, /* IER: we poll */
        {3, 0x80}, /* LCR: the divisor's latch */
        {0, 0x01}, /* 115200 baud */
        {1, 0x00},
        {3, 0x03}, /* 8n1 */
        {2, 0x07}, /* FCR: queues on and empty */
    };

    for (unsigned i = 0; i < countof(setup); i++)
        REG8(UART + setup[i][0]) = setup[i][1];
}

void console_putc(char character)
{
    while ((REG8(UART + UART_LSR) & UART_LSR_THRE) == 0)
        cpu_relax();
    REG8(UART) = (u8)character;
}

void timer_start(void)
{
    REG64(MTIMECMP) = REG64(MTIME) + TIMEBASE / TICKS_PER_SECOND;
    __asm__ volatile("csrs mie, %0" ::"r"(MIE_TIMER));
}

void timer_stop(void)
{
    __asm__ volatile("csrc mie, %0" ::"r"(MIE_TIMER));
    REG64(MTIMECMP) = ~0ul;
}

/* From the last deadline and not from now: a tick that was late does not make the next one late. */
static void timer_interrupt(void)
{
    REG64(MTIMECMP) += TIMEBASE / TICKS_PER_SECOND;
    clock_tick();
}

void trap_handler(struct trapframe *frame)
{
    switch (frame->cause) {
    case CAUSE_TIMER:
        timer_interrupt();
        break;
    case CAUSE_BREAKPOINT: /* the low two bits of an instruction tell its size */
        trap_breakpoint(frame, (*(const u16 *)frame->pc & 3) == 3 ? 4 : 2);
        break;
    case CAUSE_LOAD:
        trap_fault(frame, "load fault", frame->value);
        break;
    case CAUSE_STORE:
        trap_fault(frame, "store fault", frame->value);
        break;
    default:
        panic("trap 0x%lx at %p, value 0x%lx", frame->cause, (void *)frame->pc, frame->value);
    }
}

void cpu_init(unsigned number)
{
    cpus[number].self = &cpus[number];
    cpus[number].number = number;
    __asm__ volatile("mv tp, %0" ::"r"(&cpus[number]));
    __asm__ volatile("csrw mie, zero"); /* of a secondary one: the interrupt that woke it */
    REG32(MSIP(number)) = 0;
}

void cpu_start(unsigned number)
{
    REG32(MSIP(number)) = 1;
}

always_inline u32 big32(const u32 *word)
{
    const u8 *byte = (const u8 *)word;

    return (u32)byte[0] << 24 | (u32)byte[1] << 16 | (u32)byte[2] << 8 | byte[3];
}

/* Whether a node's name is cpu@ and a number: cpu-map and its kind are none. */
always_inline bool is_cpu_node(const char *name)
{
    static const char prefix[] = "cpu@";

    for (unsigned i = 0; prefix[i] != '\0'; i++)
        if (name[i] != prefix[i])
            return false;
    return true;
}

/* Count the CPUs in a flattened device tree (its specification, 5.4); without one there is this CPU. */
static unsigned count_cpus(const u32 *tree)
{
    enum { MAGIC = 0xd00dfeed, BEGIN_NODE = 1, PROPERTY = 3, END = 9 };
    unsigned count = 0;
    const u32 *token;

    if (tree == NULL || big32(tree) != MAGIC)
        return 1;
    token = (const u32 *)((const u8 *)tree + big32(&tree[2]));
    for (; big32(token) != END; token++) {
        if (big32(token) == BEGIN_NODE) {
            const char *name = (const char *)(token + 1);

            count += is_cpu_node(name);
            while (*name != '\0')
                name++;
            token += (u64)(name - (const char *)token) / 4;
        } else if (big32(token) == PROPERTY) {
            token += 2 + (big32(&token[1]) + 3) / 4;
        }
    }
    return count < NCPU ? count : NCPU;
}

void machine_start(const u32 *device_tree) noreturn;

void machine_start(const u32 *device_tree)
{
    cpu_init(0);
    console_init();
    ncpu = count_cpus(device_tree);
    kmain();
}

void power_off(void)
{
    REG32(FINISHER) = FINISHER_PASS;
    for (;;)
        cpu_sleep();
}
