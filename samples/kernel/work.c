/* The work list: one list for all CPUs under one lock, from which each takes the jobs bound to it. */
#include "work.h"

#include "cpu.h"
#include "list.h"

struct job {
    struct list link;
    unsigned cpu;
    void (*func)(void *);
    void *arg;
};

static struct list jobs;
static struct spinlock jobs_lock;

void work_init(void)
{
    list_init(&jobs);
}

void work_add(unsigned cpu, void (*func)(void *), void *arg)
{
    struct job *job = kmalloc(sizeof(*job));

    if (job == NULL)
        panic("no memory for a job");
    job->cpu = cpu;
    job->func = func;
    job->arg = arg;
    list_insert(&jobs, &job->link);
}

always_inline struct job *first_job(unsigned cpu)
{
    struct list *link;

    if (list_first(&jobs) == NULL)
        return NULL;
    list_for_each(link, &jobs) {
        struct job *job = container_of(link, struct job, link);

        if (job->cpu == cpu)
            return job;
    }
    return NULL;
}

/*
 * No callout takes this lock, so interrupts stay on while we hold it; but they must not run callouts now, or the other
 * CPUs would wait for those as well.
 */
static noinline struct job *work_take(unsigned cpu)
{
    struct job *job;

    critical_enter();
    spin_lock(&jobs_lock);
    job = first_job(cpu);
    if (job != NULL)
        list_remove(&job->link);
    spin_unlock(&jobs_lock);
    critical_exit();
    return job;
}

void work_run(void)
{
    struct cpu *cpu = curcpu();
    struct job *job;

    while ((job = work_take(cpu->number)) != NULL) {
        job->func(job->arg);
        cpu->jobs++;
        kfree(job);
    }
}

void work_report(void)
{
    for (unsigned i = 0; i < ncpu; i++)
        printk("cpu%u: %u jobs\n", i, cpus[i].jobs);
}
