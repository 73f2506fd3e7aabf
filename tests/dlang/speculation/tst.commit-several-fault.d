/* What was committed before a fault stays so; what comes after it is not. */
#pragma D option quiet
#pragma D option nspec=2

BEGIN { a = speculation(); b = speculation(); }
BEGIN { speculate(a); printf("one\n"); }
BEGIN { speculate(b); printf("two\n"); }
BEGIN { commit(a); x = 1 / (a - 1); discard(b); }
BEGIN { commit(b); }
ERROR { printf("fault %d\n", arg2); }
BEGIN { exit(0); }
