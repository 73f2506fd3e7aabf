/* Its name. */
#pragma D option quiet
BEGIN { trace(*(int *)0); }
ERROR { printf("%s:%s:%s:%s %d\n", probeprov, probemod, probefunc, probename, id); exit(0); }
