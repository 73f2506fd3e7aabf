#!/usr/bin/env -S kinst-run -s
/*
 * workqueues.d - work that the kernel puts off: how long it waits in a queue, and how long it takes, by function.
 *
 * FIELDS:
 *	RUNS		how often it was begun
 *	WAIT, US	time in the queue and time of the work itself, in us, both in all
 *
 * USAGE: kinst-run -s samples/d/linux/workqueues.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

sdt:workqueue::workqueue_queue_work
{
	put_off[(uintptr_t)args[2]] = timestamp;
}

sdt:workqueue::workqueue_execute_start
{
	this->wait = put_off[(uintptr_t)args[0]] ? timestamp - put_off[(uintptr_t)args[0]] : 0;
	put_off[(uintptr_t)args[0]] = 0;
	self->work = (uintptr_t)args[0]->func;
	self->work_at = timestamp;
	@works[func(self->work)] = count();
	@work_wait[func(self->work)] = sum(this->wait / 1000);
}

sdt:workqueue::workqueue_execute_end
/self->work_at/
{
	@work_us[func(self->work)] = sum((timestamp - self->work_at) / 1000);
	self->work_at = 0;
}

END
{
	printf("%-48s %8s %10s %10s\n", "FUNCTION", "RUNS", "WAIT", "US");
	printa("%-48A %@8d %@10d %@10d\n", @works, @work_wait, @work_us);
}
