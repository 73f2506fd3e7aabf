/* Functions to be called some ticks from now, by the clock interrupt of CPU 0: callout(9). */
#ifndef CALLOUT_H
#define CALLOUT_H

#include "list.h"

struct callout {
    struct list c_link;
    unsigned c_time; /* the tick it is due at */
    bool c_pending;
    void (*c_func)(void *);
    void *c_arg;
};

void callout_init(struct callout *callout);
void callout_reset(struct callout *callout, unsigned ticks, void (*func)(void *), void *arg);
bool callout_stop(struct callout *callout);

void clock_start(unsigned last_tick);
void clock_tick(void); /* from the machine's timer interrupt */
void clock_wait(void);
void clock_report(void);
unsigned uptime(void);

#endif
