/* arm64: QEMU's "virt" board with a GICv2. UART, interrupt controller, virtual timer, PSCI, and the causes of traps. */
#include "callout.h"
#include "cpu.h"
#include "trap.h"

#define UART 0x09000000ul /* PL011 */
#define GICD 0x08000000ul
#define GICC 0x08010000ul

#define UART_DR   0x00
#define UART_FR   0x18
#define UART_IBRD 0x24
#define UART_FBRD 0x28
#define UART_LCRH 0x2c
#define UART_CR   0x30
#define FR_TXFF   0x20

#define GICD_CTLR      0x000
#define GICD_ISENABLER 0x100
#define GICD_ICENABLER 0x180
#define GICC_CTLR      0x00
#define GICC_PMR       0x04
#define GICC_IAR       0x0c
#define GICC_EOIR      0x10

#define TIMER_INTERRUPT 27 /* PPI 11: the virtual timer */
#define SPURIOUS        1020

#define PSCI_SYSTEM_OFF         0x84000008
#define PSCI_CPU_ON             0xc4000003
#define PSCI_AFFINITY_INFO      0xc4000004

#define KIND_SYNC 4 /* numbers of the vectors: from EL1 on SP_EL1 */
#define KIND_IRQ  5

#define ESR_CLASS(esr)       ((esr) >> 26)
#define ESR_WRITE            0x40
#define CLASS_DATA_ABORT     0x25
#define CLASS_BREAKPOINT     0x3c
#define REG32(address)       (*(volatile u32 *)(address))
#define read_system(name)                                                                                              \
    ({                                                                                                                 \
        u64 value_;                                                                                                    \
        __asm__ volatile("mrs %0, " #name : "=r"(value_));                                                             \
        value_;                                                                                                        \
    })
#define write_system(name, value) __asm__ volatile("msr " #name ", %0\n\tisb" ::"r"((u64)(value)) : "memory")

u64 hypervisor_call(u64 function, u64 a1, u64 a2, u64 a3);
void secondary_start(void);

static void console_init(void)
{
    REG32(UART + UART_CR) = 0;
    REG32(UART + UART_IBRD) = 13; /* 115200 baud from 24 MHz */
    REG32(UART + UART_FBRD) = 1;
    REG32(UART + UART_LCRH) = 0x70; /* 8n1, queues on */
    REG32(UART + UART_CR) = 0x301;
}

void console_putc(char character)
{
    while ((REG32(UART + UART_FR) & FR_TXFF) != 0)
        cpu_relax();
    REG32(UART + UART_DR) = (u8)character;
}

void timer_start(void)
{
    REG32(GICD + GICD_CTLR) = 1;
    REG32(GICD + GICD_ISENABLER) = 1u << TIMER_INTERRUPT;
    REG32(GICC + GICC_PMR) = 0xff;
    REG32(GICC + GICC_CTLR) = 1;
    write_system(cntv_cval_el0, read_system(cntvct_el0) + read_system(cntfrq_el0) / TICKS_PER_SECOND);
    write_system(cntv_ctl_el0, 1);
}

void timer_stop(void)
{
    write_system(cntv_ctl_el0, 0);
    REG32(GICD + GICD_ICENABLER) = 1u << TIMER_INTERRUPT;
}

/* From the last deadline and not from now: a tick that was late does not make the next one late. */
static void timer_interrupt(void)
{
    write_system(cntv_cval_el0, read_system(cntv_cval_el0) + read_system(cntfrq_el0) / TICKS_PER_SECOND);
    clock_tick();
}

static void interrupt(void)
{
    u32 number = REG32(GICC + GICC_IAR);

    if (number >= SPURIOUS)
        return;
    if (number == TIMER_INTERRUPT)
        timer_interrupt();
    REG32(GICC + GICC_EOIR) = number;
}

static void exception(struct trapframe *frame)
{
    switch (ESR_CLASS(frame->esr)) {
    case CLASS_BREAKPOINT:
        trap_breakpoint(frame, 4);
        break;
    case CLASS_DATA_ABORT:
        trap_fault(frame, frame->esr & ESR_WRITE ? "store fault" : "load fault", frame->far);
        break;
    default:
        panic("exception 0x%lx at %p, address 0x%lx", frame->esr, (void *)frame->pc, frame->far);
    }
}

void trap_handler(struct trapframe *frame, unsigned kind)
{
    if (kind == KIND_IRQ)
        interrupt();
    else if (kind == KIND_SYNC)
        exception(frame);
    else
        panic("vector %u at %p", kind, (void *)frame->pc);
}

void cpu_init(unsigned number)
{
    cpus[number].self = &cpus[number];
    cpus[number].number = number;
    write_system(tpidr_el1, &cpus[number]);
}

void cpu_start(unsigned number)
{
    hypervisor_call(PSCI_CPU_ON, number, (u64)secondary_start, number);
}

/* The firmware knows its CPUs; theirs are numbers 0 to 7 of cluster 0. */
static unsigned count_cpus(void)
{
    unsigned count = 1;

    while (count < NCPU && (int)hypervisor_call(PSCI_AFFINITY_INFO, count, 0, 0) >= 0)
        count++;
    return count;
}

void machine_start(void) noreturn;

void machine_start(void)
{
    cpu_init(0);
    console_init();
    ncpu = count_cpus();
    kmain();
}

void power_off(void)
{
    hypervisor_call(PSCI_SYSTEM_OFF, 0, 0, 0);
    for (;;)
        cpu_sleep();
}
