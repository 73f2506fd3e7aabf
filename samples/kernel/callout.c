/*
 * The callout wheel: a callout due at tick t waits in bucket t mod 8. The timer interrupt of CPU 0 turns the wheel, or
 * only counts the tick when it comes inside a critical section. Time here is counted in ticks handled, not in ticks
 * that came, so what the callouts do never depends on how fast the machine is.
 */
#include "callout.h"

#include "cpu.h"
#include "sdt.h"

#define BUCKETS 8

SDT_PROVIDER_DEFINE(callout_execute);
SDT_PROBE_DEFINE1(callout_execute, , , callout_start, "struct callout *");
SDT_PROBE_DEFINE1(callout_execute, , , callout_end, "struct callout *");

static struct list wheel[BUCKETS];
static unsigned hard_ticks;          /* that came */
static volatile unsigned soft_ticks; /* whose callouts have run */
static volatile bool clock_running;
static unsigned executed, stopped;
static struct callout clock_end;

unsigned uptime(void)
{
    return soft_ticks;
}

void callout_init(struct callout *callout)
{
    list_init(&callout->c_link);
    callout->c_pending = false;
}

bool callout_stop(struct callout *callout)
{
    unsigned long flags = irq_save();
    bool was_pending = callout->c_pending;

    if (was_pending) {
        list_remove(&callout->c_link);
        callout->c_pending = false;
        stopped++;
    }
    irq_restore(flags);
    return was_pending;
}

void callout_reset(struct callout *callout, unsigned ticks, void (*func)(void *), void *arg)
{
    unsigned long flags = irq_save();

    if (callout->c_pending)
        list_remove(&callout->c_link);
    callout->c_func = func;
    callout->c_arg = arg;
    callout->c_time = soft_ticks + ticks;
    callout->c_pending = true;
    list_insert(&wheel[callout->c_time % BUCKETS], &callout->c_link);
    irq_restore(flags);
}

/* The function may set its own callout again, so it is off the wheel before the call and not looked at after. */
static noinline void callout_execute(struct callout *callout)
{
    void (*func)(void *) = callout->c_func;
    void *arg = callout->c_arg;

    callout->c_pending = false;
    executed++;
    SDT_PROBE1(callout_execute, , , callout_start, callout);
    func(arg);
    SDT_PROBE1(callout_execute, , , callout_end, callout);
}

/* The first callout of the bucket that is due now; others there are due one or more turns of the wheel later. */
always_inline struct callout *callout_due(const struct list *bucket, unsigned now)
{
    struct list *link;

    list_for_each(link, bucket) {
        struct callout *callout = container_of(link, struct callout, c_link);

        if (callout->c_time == now)
            return callout;
    }
    return NULL;
}

/* With interrupts off: a tick in the middle of a tick would run later callouts first. */
static noinline void callout_process(void)
{
    while (clock_running && soft_ticks != hard_ticks) {
        unsigned now = ++soft_ticks;
        struct callout *callout;

        while ((callout = callout_due(&wheel[now % BUCKETS], now)) != NULL) {
            list_remove(&callout->c_link);
            callout_execute(callout);
        }
    }
}

void clock_tick(void)
{
    struct cpu *cpu = curcpu();

    hard_ticks++;
    if (cpu->critnest > 0) {
        cpu->owepreempt = true;
        return;
    }
    callout_process();
}

void critical_exit_preempt(void)
{
    unsigned long flags = irq_save();

    curcpu()->owepreempt = false;
    callout_process();
    irq_restore(flags);
}

static void clock_stop(void *arg)
{
    (void)arg;
    timer_stop();
    clock_running = false;
    hard_ticks = soft_ticks; /* one that came in the meantime has no callouts to run */
}

void clock_start(unsigned last_tick)
{
    for (unsigned i = 0; i < BUCKETS; i++)
        list_init(&wheel[i]);
    callout_init(&clock_end);
    callout_reset(&clock_end, last_tick, clock_stop, NULL);
    clock_running = true;
    timer_start();
}

void clock_wait(void)
{
    while (clock_running) {
        unsigned long flags = irq_save();

        /* Looked at with interrupts off: a last tick between the test and the sleep would never wake us. */
        if (clock_running)
            cpu_idle();
        irq_restore(flags);
    }
}

void clock_report(void)
{
    printk("clock: %u ticks, %u callouts executed, %u stopped\n", uptime(), executed, stopped);
    total(soft_ticks);
    total(executed);
    total(stopped);
}
