/* Sizes in all units, in any case. */
#pragma D option quiet
#pragma D option bufsize=4k
#pragma D option aggsize=4K
#pragma D option dynvarsize=1m
#pragma D option specsize=0x1000
#pragma D option strsize=1M
#pragma D option jstackstrsize=010
#pragma D option aggsize=1g
#pragma D option aggsize=0t
#pragma D option strsize=8
BEGIN { s = "0123456789"; printf("%s\n", s); exit(0); }
