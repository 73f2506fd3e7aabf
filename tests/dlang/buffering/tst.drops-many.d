/* Drops are counted. */
#pragma D option quiet
#pragma D option bufsize=40
BEGIN { trace(1); }
BEGIN { trace(2); }
BEGIN { trace(3); }
BEGIN { trace(4); }
BEGIN { x = 1; }
tick-2s { printf(" %d\n", x); exit(0); }
