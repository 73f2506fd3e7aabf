/* All units. */
#pragma D option quiet
tick-200us { us++; }
tick-400usec { usec++; }
tick-1ms { ms++; }
tick-2msec { msec++; }
tick-500000ns { ns++; }
tick-500000nsec { nsec++; }
tick-1s { printf("1s\n"); }
tick-1sec { printf("1sec\n"); }
tick-1100ms { printf("%d %d %d %d %d %d\n", us, usec, ms, msec, ns, nsec); exit(0); }
