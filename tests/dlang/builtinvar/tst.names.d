/* The four parts of a probe's name. */
#pragma D option quiet
BEGIN { printf("[%s] [%s] [%s] [%s]\n", probeprov, probemod, probefunc, probename); exit(0); }
END { printf("[%s] [%s]\n", probeprov, probename); }
