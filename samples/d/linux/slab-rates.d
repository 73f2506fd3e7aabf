#!/usr/bin/env -S kinst-run -s
/*
 * slab-rates.d - objects that are taken from each of the kernel's caches, and their bytes.
 *
 * kmalloc() has caches as well, of sizes; here they are all one row.
 *
 * USAGE: kinst-run -s samples/d/linux/slab-rates.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

sdt:kmem::kmem_cache_alloc
/arg1/
{
	@taken[stringof(args[2]->name)] = count();
	@taken_bytes[stringof(args[2]->name)] = sum(args[2]->object_size);
}

sdt:kmem::kmalloc
/arg1/
{
	@taken["kmalloc()"] = count();
	@taken_bytes["kmalloc()"] = sum(args[3]);
}

END
{
	printf("%-32s %10s %12s\n", "CACHE", "OBJECTS", "BYTES");
	printa("%-32s %@10d %@12d\n", @taken, @taken_bytes);
}
