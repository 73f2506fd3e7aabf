/* Aggregations are taken before the records are consumed: what is added later in BEGIN is there, too. */
#pragma D option quiet
BEGIN { @a = sum(2); printa("%@d\n", @a); @a = sum(3); }
BEGIN { @a = sum(4); printa("%@d\n", @a); exit(0); }
