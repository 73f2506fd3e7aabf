#!/usr/bin/env -S kinst-run -s
/*
 * lock-contention.d - locks that had to be waited for, by kind, program and stack.
 *
 * Kinds: spin, mutex, and reading or writing of a semaphore (rwsem) or of a spinning lock. The argument is the number
 * of stacks to print; those that wait longest come last.
 *
 * USAGE: kinst-run -s samples/d/linux/lock-contention.d VMLINUX [STACKS] --initrd FILE --console /dev/null
 */

#pragma D option quiet
#pragma D option defaultargs

BEGIN
{
	lock_kind[0] = "sleeps";
	lock_kind[1] = "spin";
	lock_kind[2] = "rwsem read";
	lock_kind[3] = "spin read";
	lock_kind[4] = "rwsem write";
	lock_kind[5] = "spin write";
	lock_kind[32] = "mutex";
	lock_kind[33] = "mutex, spins";
}

sdt:lock::contention_begin
/!self->contended_at/
{
	self->contended_at = timestamp;
}

sdt:lock::contention_begin
{
	self->contended_for = args[1];
}

sdt:lock::contention_end
/self->contended_at/
{
	this->us = (timestamp - self->contended_at) / 1000;
	self->contended_at = 0;
	@lock_waits[lock_kind[self->contended_for], execname, stack()] = sum(this->us);
	@locks[lock_kind[self->contended_for]] = count();
	@lock_us[lock_kind[self->contended_for]] = sum(this->us);
}

END
{
	trunc(@lock_waits, $1 ? $1 : 10);
	printa("%s: %s%k%@16d us\n", @lock_waits);
	printf("%-16s %8s %12s\n", "LOCK", "WAITS", "US");
	printa("%-16s %@8d %@12d\n", @locks, @lock_us);
}
