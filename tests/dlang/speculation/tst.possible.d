/* A number that a speculation could have, and has not: speculate() passes the clause over, the others do nothing. */
#pragma D option quiet
#pragma D option nspec=2

BEGIN { speculate(2); printf("never\n"); }
BEGIN { s = speculation(); discard(s); }
BEGIN { speculate(s); x = 5; printf("never\n"); }
BEGIN { commit(2); discard(1); x++; }
BEGIN { commit(s); }
ERROR { printf("error\n"); }
BEGIN { printf("nothing\n%d\n", x); exit(0); }
