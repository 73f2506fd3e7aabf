/* A format may show the value several times, or not at all. */
#pragma D option quiet

BEGIN { @["k"] = sum(7); exit(0); }
END { printa("%s %@d %@x\n", @); printa("just %s\n", @); }
