#!/usr/bin/env -S kinst-run -s
/*
 * profile-stacks.d - where the time goes: stacks of the kernel, and of programs in user mode, 997 times a second.
 *
 * --user gives a program's names and frames. The argument is the number of stacks to print of each, the most frequent
 * last.
 *
 * USAGE: kinst-run -s samples/d/linux/profile-stacks.d VMLINUX [STACKS] --initrd FILE --console /dev/null
 */

#pragma D option quiet
#pragma D option defaultargs

profile-997
/arg0/
{
	@kernel_samples[stack()] = count();
	@in_kernel = count();
}

profile-997
/arg1/
{
	@user_samples[execname, ustack()] = count();
	@in_user = count();
}

END
{
	trunc(@kernel_samples, $1 ? $1 : 5);
	trunc(@user_samples, $1 ? $1 : 5);
	printa("%k%@16d\n", @kernel_samples);
	printa("%s%k%@16d\n", @user_samples);
	printa("%@d samples in the kernel, ", @in_kernel);
	printa("%@d in user mode\n", @in_user);
}
