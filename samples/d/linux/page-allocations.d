#!/usr/bin/env -S kinst-run -s
/*
 * page-allocations.d - who allocates memory: pages asked of the page allocator, by stack.
 *
 * The stacks with most pages come last. The argument is the number of stacks to print.
 *
 * USAGE: kinst-run -s samples/d/linux/page-allocations.d VMLINUX [STACKS] --initrd FILE --console /dev/null
 */

#pragma D option quiet
#pragma D option defaultargs

fbt::get_page_from_freelist:entry
{
	@pages[stack(12)] = sum(1 << arg1);
	@all_pages = sum(1 << arg1);
}

END
{
	trunc(@pages, $1 ? $1 : 5);
	printa("%k%@16d pages\n", @pages);
	printa("\n%@d pages in all\n", @all_pages);
}
