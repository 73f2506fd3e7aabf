#!/usr/bin/env -S kinst-run -s
/*
 * page-faults.d - page faults of user mode, by program and by its function.
 *
 * --user gives a program's names; without, functions are addresses. Faults that the kernel has when it reads or writes
 * what a program points to are those of the function that made the system call. They are counted when the page is
 * there: before, the code that faults may be what is missing.
 *
 * USAGE: kinst-run -s samples/d/linux/page-faults.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

fbt::handle_mm_fault:return
/curthread->mm != NULL/
{
	@faults[execname, ufunc(uregs[R_PC])] = count();
	@all_faults = count();
}

END
{
	printf("%-16s %-40s %8s\n", "PROGRAM", "FUNCTION", "FAULTS");
	printa("%-16s %-40A %@8d\n", @faults);
	printa("%@d page faults in all\n", @all_faults);
}
