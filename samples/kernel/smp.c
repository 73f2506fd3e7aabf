/* More than one CPU: each secondary one comes up, runs its share of the work list and parks. */
#include "cpu.h"
#include "work.h"

#define PATIENCE 100000000 /* turns of the waiting loop before we give a CPU up */

struct cpu cpus[NCPU];
unsigned ncpu = 1;
u8 cpu_stacks[NCPU][STACK_SIZE] __attribute__((aligned(16)));

static bool wait_for(const bool *flag)
{
    for (unsigned turns = 0; turns < PATIENCE; turns++) {
        if (__atomic_load_n(flag, __ATOMIC_ACQUIRE))
            return true;
        cpu_relax();
    }
    return false;
}

void smp_start(void)
{
    for (unsigned i = 1; i < ncpu; i++) {
        cpu_start(i);
        if (!wait_for(&cpus[i].online))
            panic("cpu%u did not start", i);
        printk("cpu%u: started\n", i);
    }
}

void smp_wait(void)
{
    for (unsigned i = 1; i < ncpu; i++)
        if (!wait_for(&cpus[i].done))
            panic("cpu%u did not finish", i);
}

/* From the machine's start code, on this CPU's own stack, interrupts off: they stay off. */
void cpu_main(unsigned number)
{
    cpu_init(number);
    __atomic_store_n(&cpus[number].online, true, __ATOMIC_RELEASE);
    work_run();
    __atomic_store_n(&cpus[number].done, true, __ATOMIC_RELEASE);
    for (;;) /* its stack may be wiped from now on: nothing below uses it */
        cpu_sleep();
}
