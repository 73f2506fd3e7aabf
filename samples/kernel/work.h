/* A list of jobs, each bound to a CPU. */
#ifndef WORK_H
#define WORK_H

#include "kernel.h"

void work_init(void);
void work_add(unsigned cpu, void (*func)(void *), void *arg);
void work_run(void); /* this CPU's share */
void work_report(void);

#endif
