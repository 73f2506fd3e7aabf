#!/usr/bin/env -S kinst-run -s
/*
 * memleak.d - the kernel's memory that was allocated and not freed again, and who frees what who allocated.
 *
 * Objects are known by their address, and belong to the function that asked for them. The argument is the number of
 * rows of each table; those with most come last.
 *
 * USAGE: kinst-run -s samples/d/linux/memleak.d VMLINUX [ROWS] --initrd FILE --console /dev/null
 */

#pragma D option quiet
#pragma D option defaultargs

sdt:kmem::kmalloc
/arg1/
{
	this->bytes = args[3];
}

sdt:kmem::kmem_cache_alloc
/arg1/
{
	this->bytes = args[2]->object_size;
}

sdt:kmem::kmalloc, sdt:kmem::kmem_cache_alloc
/arg1/
{
	owner[arg1] = arg0;
	owned[arg1] = this->bytes;
	@outstanding[func(arg0)] = sum(this->bytes);
	@objects[func(arg0)] = sum(1);
}

sdt:kmem::kfree, sdt:kmem::kmem_cache_free
/owner[arg1]/
{
	@outstanding[func(owner[arg1])] = sum(-owned[arg1]);
	@objects[func(owner[arg1])] = sum(-1);
	@freed_by[func(owner[arg1]), func(arg0)] = sum(owned[arg1]);
	owner[arg1] = 0;
	owned[arg1] = 0;
}

END
{
	trunc(@freed_by, $1 ? $1 : 15);
	trunc(@outstanding, $1 ? $1 : 15);
	trunc(@objects, $1 ? $1 : 15);
	printf("%-40s %10s\n", "ALLOCATED BY", "BYTES LEFT");
	printa("%-40A %@10d\n", @outstanding);
	printf("%-40s %10s\n", "ALLOCATED BY", "LEFT");
	printa("%-40A %@10d\n", @objects);
	printf("%-40s %-40s %10s\n", "ALLOCATED BY", "FREED BY", "BYTES");
	printa("%-40A %-40A %@10d\n", @freed_by);
}
