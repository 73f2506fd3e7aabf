/* From the machine's start code to power-off: starts each part, lets it work, prints what came out. */
#include "callout.h"
#include "client.h"
#include "cpu.h"
#include "net.h"
#include "rpc.h"
#include "trap.h"
#include "vfs.h"
#include "work.h"

#define LAST_TICK 20

static u32 checksum = 2166136261;

/* Every result goes into the checksum that the last line shows. */
void total(u64 value)
{
    checksum = hash_bytes(checksum, &value, sizeof(value));
}

/* The kind of function that recursion is always shown with. */
static noinline u32 fibonacci(u32 n)
{
    if (n < 2)
        return n;
    return fibonacci(n - 1) + fibonacci(n - 2);
}

/*
 * What interrupts left on the stacks depends on when they came. Wiped, two runs of this kernel end with the same
 * memory, however their timing differed; tools that run it compare just that.
 */
static noinline void wipe_stacks(void)
{
    volatile u64 *word = (u64 *)cpu_stacks[0];
    const u64 top = current_sp();

    while ((u64)word < top)
        *word++ = 0;
    for (unsigned i = 1; i < NCPU; i++)
        for (word = (u64 *)cpu_stacks[i]; word < (u64 *)cpu_stacks[i + 1]; word++)
            *word = 0;
}

void kmain(void)
{
    printk("kernel: booting\n");
    printk("cpu: %u found\n", ncpu);
    heap_init();
    vfs_init(CLIENTS);
    work_init();
    for (unsigned i = 0; i < CLIENTS; i++)
        work_add(i % ncpu, client_run, (void *)(uintptr_t)i);

    clock_start(LAST_TICK);
    net_start();
    irq_enable();
    smp_start();
    work_run();
    smp_wait();
    total(fibonacci(12));
    clock_wait();
    net_stop();

    work_report();
    client_report();
    rpc_report();
    vfs_report();
    net_report();
    clock_report();
    heap_report();
    trap_selftest();
    wipe_stacks();
    printk("kernel: all done, checksum %08x\n", checksum);
    power_off();
}
