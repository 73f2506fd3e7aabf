#!/usr/bin/env -S kinst-run -s
/*
 * softirqs.d - soft interrupts: how long they wait once they are raised, and how long they run, by kind.
 *
 * One that is raised again before it ran waits from the first time.
 *
 * FIELDS:
 *	RUNS		how often it ran
 *	WAIT, NS	time from raised to run, and time that it ran, in ns
 *
 * USAGE: kinst-run -s samples/d/linux/softirqs.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

BEGIN
{
	vector[0] = "hi";
	vector[1] = "timer";
	vector[2] = "net_tx";
	vector[3] = "net_rx";
	vector[4] = "block";
	vector[5] = "irq_poll";
	vector[6] = "tasklet";
	vector[7] = "sched";
	vector[8] = "hrtimer";
	vector[9] = "rcu";
}

sdt:irq::softirq_raise
/!raised[cpu, args[0]]/
{
	raised[cpu, args[0]] = timestamp;
}

sdt:irq::softirq_entry
{
	@softirqs[vector[args[0]]] = count();
	@softirq_wait[vector[args[0]]] = sum(raised[cpu, args[0]] ? timestamp - raised[cpu, args[0]] : 0);
	raised[cpu, args[0]] = 0;
	softirq_at[cpu] = timestamp;
}

sdt:irq::softirq_exit
/softirq_at[cpu]/
{
	@softirq_ns[vector[args[0]]] = sum(timestamp - softirq_at[cpu]);
	softirq_at[cpu] = 0;
}

END
{
	printf("%-10s %8s %12s %12s\n", "SOFTIRQ", "RUNS", "WAIT", "NS");
	printa("%-10s %@8d %@12d %@12d\n", @softirqs, @softirq_wait, @softirq_ns);
}
