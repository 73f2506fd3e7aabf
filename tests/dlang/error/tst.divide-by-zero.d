/* A divisor that is 0 when the clause runs. */
#pragma D option quiet
BEGIN { z = 0; x = 1 / z; }
BEGIN { x = 1 % z; }
ERROR { printf("%d %d\n", arg4, arg4 == DTRACEFLT_DIVZERO); }
BEGIN { exit(0); }
