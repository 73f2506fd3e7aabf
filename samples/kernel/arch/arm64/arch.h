/* arm64, EL1: what the rest of the kernel asks of a machine. */
#ifndef ARCH_H
#define ARCH_H

#include "kernel.h"

#define DAIF_IRQ 0x80ul

/* Saved by the vectors in head.S, in this order. */
struct trapframe {
    u64 x[31]; /* x0 to x30 */
    u64 sp, pc, spsr, esr, far;
};

always_inline u64 *trapframe_result(struct trapframe *frame)
{
    return &frame->x[0];
}

always_inline u64 trapframe_caller(const struct trapframe *frame)
{
    return frame->x[30];
}

always_inline void barrier(void)
{
    __asm__ volatile("" ::: "memory");
}

always_inline struct cpu *curcpu(void)
{
    struct cpu *cpu;

    __asm__ volatile("mrs %0, tpidr_el1" : "=r"(cpu));
    return cpu;
}

always_inline u64 current_sp(void)
{
    u64 sp;

    __asm__ volatile("mov %0, sp" : "=r"(sp));
    return sp;
}

always_inline unsigned long irq_save(void)
{
    unsigned long daif;

    __asm__ volatile("mrs %0, daif\n\tmsr daifset, #2" : "=r"(daif)::"memory");
    return daif;
}

always_inline void irq_restore(unsigned long flags)
{
    __asm__ volatile("msr daif, %0" ::"r"(flags) : "memory");
}

always_inline void irq_enable(void)
{
    __asm__ volatile("msr daifclr, #2" ::: "memory");
}

/* Interrupts are off: wfi wakes all the same when one is pending, and it is taken when they are on again. */
always_inline void cpu_idle(void)
{
    __asm__ volatile("wfi" ::: "memory");
    irq_enable();
}

/* For ever, with interrupts off. */
always_inline void cpu_sleep(void)
{
    __asm__ volatile("wfi");
}

always_inline void cpu_relax(void)
{
    __asm__ volatile("yield" ::: "memory");
}

/* Exclusives and not LSE's cas: a Cortex-A57 has no other. */
always_inline bool atomic_cas(u32 *word, u32 expected, u32 desired)
{
    u32 old, failed;

    __asm__ volatile("1: ldaxr %w0, %2\n"
                     "   cmp %w0, %w3\n"
                     "   b.ne 2f\n"
                     "   stlxr %w1, %w4, %2\n"
                     "   cbnz %w1, 1b\n"
                     "2:\n"
                     : "=&r"(old), "=&r"(failed), "+Q"(*word)
                     : "r"(expected), "r"(desired)
                     : "cc", "memory");
    return old == expected;
}

always_inline void breakpoint(void)
{
    __asm__ volatile("brk #1" ::: "memory");
}

void console_putc(char character);
void cpu_init(unsigned number);
void cpu_start(unsigned number);
void timer_start(void);
void timer_stop(void);
void power_off(void) noreturn;

#endif
