/* riscv64, machine mode: what the rest of the kernel asks of a machine. */
#ifndef ARCH_H
#define ARCH_H

#include "kernel.h"

#define MSTATUS_MIE 8ul

/* Saved by trap_vector in head.S, in this order. */
struct trapframe {
    u64 x[31]; /* x1 to x31 */
    u64 pc, status, cause, value;
    u64 padding; /* the stack stays aligned to 16 */
};

always_inline u64 *trapframe_result(struct trapframe *frame)
{
    return &frame->x[9]; /* a0 is x10 */
}

always_inline u64 trapframe_caller(const struct trapframe *frame)
{
    return frame->x[0]; /* ra is x1 */
}

always_inline void barrier(void)
{
    __asm__ volatile("" ::: "memory");
}

always_inline struct cpu *curcpu(void)
{
    struct cpu *cpu;

    __asm__ volatile("mv %0, tp" : "=r"(cpu));
    return cpu;
}

always_inline u64 current_sp(void)
{
    u64 sp;

    __asm__ volatile("mv %0, sp" : "=r"(sp));
    return sp;
}

always_inline unsigned long irq_save(void)
{
    unsigned long status;

    __asm__ volatile("csrrci %0, mstatus, 8" : "=r"(status)::"memory");
    return status & MSTATUS_MIE;
}

always_inline void irq_restore(unsigned long flags)
{
    __asm__ volatile("csrs mstatus, %0" ::"r"(flags) : "memory");
}

always_inline void irq_enable(void)
{
    irq_restore(MSTATUS_MIE);
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

/* pause, of Zihintpause: a fence without effect where the CPU does not know it. */
always_inline void cpu_relax(void)
{
    __asm__ volatile(".insn 0x0100000f" ::: "memory");
}

always_inline bool atomic_cas(u32 *word, u32 expected, u32 desired)
{
    u32 old, failed;

    __asm__ volatile("1: lr.w.aq %0, %2\n"
                     "   bne %0, %3, 2f\n"
                     "   sc.w.rl %1, %4, %2\n"
                     "   bnez %1, 1b\n"
                     "2:\n"
                     : "=&r"(old), "=&r"(failed), "+A"(*word)
                     : "r"(expected), "r"(desired)
                     : "memory");
    return old == expected;
}

/* c.ebreak, two bytes: the compiler's assembler chooses it. */
always_inline void breakpoint(void)
{
    __asm__ volatile("ebreak" ::: "memory");
}

void console_putc(char character);
void cpu_init(unsigned number);
void cpu_start(unsigned number);
void timer_start(void);
void timer_stop(void);
void power_off(void) noreturn;

#endif
