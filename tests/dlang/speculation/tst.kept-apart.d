/* Two speculations are kept apart; one is committed. */
#pragma D option quiet

#pragma D option nspec=2

BEGIN { a = speculation(); b = speculation(); }
BEGIN { speculate(a); printf("a "); }
BEGIN { speculate(b); printf("b "); }
BEGIN { speculate(a); printf("A\n"); }
BEGIN { discard(b); }
BEGIN { commit(a); }
BEGIN { exit(0); }
