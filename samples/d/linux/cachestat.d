#!/usr/bin/env -S kinst-run -s
/*
 * cachestat.d - hits and misses of the page cache, each second and in all.
 *
 * An access is a page of the cache that a program reads or writes. Pages that were not there and had to be added are
 * misses; what is read ahead and never wanted is added, too, so that there can be more of these than accesses. Pages
 * of tmpfs are never missed.
 *
 * USAGE: kinst-run -s samples/d/linux/cachestat.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

int64_t accesses, added, all_accesses, all_added;

BEGIN
{
	printf("%10s %10s %10s %6s\n", "ACCESSES", "HITS", "ADDED", "HITS%");
}

fbt::folio_mark_accessed:entry
{
	accesses++;
}

sdt:filemap::mm_filemap_add_to_page_cache
{
	added++;
}

tick-1s, END
{
	this->hits = accesses > added ? accesses - added : 0;
	printf("%10d %10d %10d %6d\n", accesses, this->hits, added, accesses ? 100 * this->hits / accesses : 0);
	all_accesses += accesses;
	all_added += added;
	accesses = 0;
	added = 0;
}

END
{
	printf("%d accesses, %d pages added\n", all_accesses, all_added);
}
