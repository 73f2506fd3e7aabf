/* Per-CPU state, critical sections and spin locks. */
#ifndef CPU_H
#define CPU_H

#include "arch.h"
#include "kernel.h"

struct cpu {
    struct cpu *self; /* amd64 reads it through %gs:0 */
    unsigned number;
    unsigned critnest;  /* depth of critical sections */
    bool owepreempt;    /* a tick came inside one: its callouts are still to run */
    bool online, done;
    unsigned jobs;      /* of the work list, run here */
};

extern struct cpu cpus[NCPU];
extern unsigned ncpu;
extern u8 cpu_stacks[NCPU][STACK_SIZE];

void smp_start(void);
void smp_wait(void);
void cpu_main(unsigned number) noreturn; /* where a secondary CPU arrives */
void critical_exit_preempt(void);

/*
 * Between these two no callout runs on this CPU, but interrupts are still taken: a tick only notes that it owes the
 * callouts, and the outermost critical_exit pays. This is critical_enter(9), and cheaper than masking interrupts.
 */
always_inline void critical_enter(void)
{
    curcpu()->critnest++;
    barrier();
}

always_inline void critical_exit(void)
{
    struct cpu *cpu = curcpu();

    barrier();
    if (--cpu->critnest > 0)
        return;
    if (!cpu->owepreempt)
        return;
    critical_exit_preempt();
}

struct spinlock {
    u32 held;
};

always_inline void spin_lock(struct spinlock *lock)
{
    while (!atomic_cas(&lock->held, 0, 1)) {
        /* Spin on a plain load: an exclusive one would pull the line from its owner each time. */
        while (__atomic_load_n(&lock->held, __ATOMIC_RELAXED) != 0)
            cpu_relax();
    }
}

always_inline void spin_unlock(struct spinlock *lock)
{
    __atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
}

/* For locks that a callout takes too: an interrupt by the holder's own CPU would spin for ever. */
always_inline unsigned long spin_lock_irqsave(struct spinlock *lock)
{
    unsigned long flags = irq_save();

    spin_lock(lock);
    return flags;
}

always_inline void spin_unlock_irqrestore(struct spinlock *lock, unsigned long flags)
{
    spin_unlock(lock);
    irq_restore(flags);
}

always_inline void atomic_add(u32 *counter, u32 amount)
{
    u32 old;

    do
        old = __atomic_load_n(counter, __ATOMIC_RELAXED);
    while (!atomic_cas(counter, old, old + amount));
}

#endif
