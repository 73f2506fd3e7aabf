/* commit() and discard() by turns; the same one twice, none at all. */
#pragma D option quiet
#pragma D option nspec=4

BEGIN { a = speculation(); b = speculation(); c = speculation(); d = speculation(); }
BEGIN { speculate(a); printf("a\n"); }
BEGIN { speculate(b); printf("b\n"); }
BEGIN { speculate(c); printf("c\n"); }
BEGIN { speculate(d); printf("d\n"); }
BEGIN { commit(d); discard(c); discard(d); }
BEGIN { commit(0); }
BEGIN { commit(b); }
BEGIN { commit(b); discard(a); }
BEGIN { commit(a); }
BEGIN { exit(0); }
