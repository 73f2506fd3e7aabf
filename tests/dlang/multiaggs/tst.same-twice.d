/* The same aggregation more than once. */
#pragma D option quiet
BEGIN { @a["k"] = sum(4); printa("%s %@d %@d\n", @a, @a); exit(0); }
