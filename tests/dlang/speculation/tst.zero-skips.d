/* speculate(0) skips the rest of the clause, assignments as well; commit(0) and discard(0) do nothing. */
#pragma D option quiet
BEGIN { x = 1; }
BEGIN { speculate(0); x = 2; printf("never\n"); }
BEGIN { commit(0); }
BEGIN { discard(0); x += 10; }
BEGIN { printf("%d\n", x); exit(0); }
