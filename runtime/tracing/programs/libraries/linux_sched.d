/* Types of sched's arguments. */

#pragma D depends_on library linux_tasks.d

typedef int processorid_t;

typedef struct cpuinfo {
	processorid_t cpu_id;
} cpuinfo_t;

translator cpuinfo_t < struct rq *R > {
	cpu_id = R->cpu;
};
