/* And with speculate(). */
#pragma D option quiet
#pragma D option nspec=2
BEGIN { a = speculation(); b = speculation(); }
BEGIN { speculate(a); printf("a\n"); }
BEGIN { speculate(b); discard(a); printf("b\n"); }
BEGIN { commit(a); }
BEGIN { commit(b); }
BEGIN { exit(0); }
