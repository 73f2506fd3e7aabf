/* %@ may stand anywhere, and more than once. */
#pragma D option quiet
BEGIN { @a["k"] = sum(5); printa("%@d %s %@x %@5d|%@-5d|%@05d\n", @a); exit(0); }
