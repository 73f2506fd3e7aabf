#!/usr/bin/env -S kinst-run -s
/*
 * hot.d - where the CPUs are, 4999 times a second, by function.
 *
 * No function is patched for this: profile probes fire by the clock. arg0 is the program counter in the kernel. Not
 * 5000 times: the kernel's own clock ticks 1000 times a second, and each fifth sample would see nothing but that.
 *
 * USAGE: kinst-run -s samples/d/hot.d IMAGE --console /dev/null
 */

#pragma D option quiet

profile-4999
{
	@samples[func(arg0)] = count();
	@all = count();
}

END
{
	printf("%-40s %9s\n", "FUNCTION", "SAMPLES");
	printa("%-40a %@9d\n", @samples);
	printa("in all %@43d\n", @all);
}
