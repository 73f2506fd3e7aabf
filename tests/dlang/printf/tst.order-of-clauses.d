/* Several printf() of several clauses. */
#pragma D option quiet
BEGIN { printf("a"); }
BEGIN { printf("b"); }
BEGIN { printf("c\n"); exit(0); }
END { printf("d\n"); }
