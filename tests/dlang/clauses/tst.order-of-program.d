/* Clauses of a probe run in the order of the program, and see what the last did. */
#pragma D option quiet

int x;
BEGIN { x = 1; }
BEGIN /x == 1/ { x = 2; }
BEGIN /x == 1/ { printf("never\n"); }
BEGIN /x == 2/ { printf("two\n"); exit(0); }
