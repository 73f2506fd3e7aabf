/* The name is as it was written. */
#pragma D option quiet
tick-1ms { printf("%s %s %s %s\n", probeprov, probemod, probefunc, probename); exit(0); }
