/* amd64, long mode, ring 0: what the rest of the kernel asks of a machine. */
#ifndef ARCH_H
#define ARCH_H

#include "kernel.h"

#define RFLAGS_IF 0x200ul

/* Saved by trap_common in trap.S, in this order; from `error` on by the stub of the vector and by the CPU. */
struct trapframe {
    u64 r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax;
    u64 vector, error, pc, cs, rflags, rsp, ss;
};

always_inline u64 *trapframe_result(struct trapframe *frame)
{
    return &frame->rax;
}

/* For a function without a frame of its own, such as copyin_word. */
always_inline u64 trapframe_caller(const struct trapframe *frame)
{
    return *(const u64 *)frame->rsp;
}

always_inline void barrier(void)
{
    __asm__ volatile("" ::: "memory");
}

always_inline struct cpu *curcpu(void)
{
    struct cpu *cpu;

    __asm__ volatile("mov %%gs:0, %0" : "=r"(cpu));
    return cpu;
}

always_inline u64 current_sp(void)
{
    u64 sp;

    __asm__ volatile("mov %%rsp, %0" : "=r"(sp));
    return sp;
}

always_inline unsigned long irq_save(void)
{
    unsigned long rflags;

    __asm__ volatile("pushfq\n\tpopq %0\n\tcli" : "=r"(rflags)::"memory");
    return rflags & RFLAGS_IF;
}

always_inline void irq_enable(void)
{
    __asm__ volatile("sti" ::: "memory");
}

always_inline void irq_restore(unsigned long flags)
{
    if (flags == 0)
        return;
    irq_enable();
}

/* Interrupts are off, and hlt would sleep through them: sti lets them in only after the instruction that follows it. */
always_inline void cpu_idle(void)
{
    __asm__ volatile("sti\n\thlt" ::: "memory");
}

/* For ever, with interrupts off. */
always_inline void cpu_sleep(void)
{
    __asm__ volatile("cli\n\thlt");
}

always_inline void cpu_relax(void)
{
    __asm__ volatile("pause" ::: "memory");
}

always_inline bool atomic_cas(u32 *word, u32 expected, u32 desired)
{
    bool swapped;

    __asm__ volatile("lock cmpxchgl %3, %1"
                     : "=@ccz"(swapped), "+m"(*word), "+a"(expected)
                     : "r"(desired)
                     : "memory");
    return swapped;
}

always_inline void breakpoint(void)
{
    __asm__ volatile("int3" ::: "memory");
}

void console_putc(char character);
void cpu_init(unsigned number);
void cpu_start(unsigned number);
void timer_start(void);
void timer_stop(void);
void power_off(void) noreturn;

#endif
