/* A variable is there for all clauses, whether or not the one that assigns it ran. */
#pragma D option quiet

BEGIN /0/ { x = 5; }
BEGIN { printf("%d\n", x); exit(0); }
