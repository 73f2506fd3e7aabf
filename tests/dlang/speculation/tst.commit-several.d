/* Several in a firing, each in a clause of its own, in their order; each number is free again then. */
#pragma D option quiet
#pragma D option nspec=3

BEGIN { a = speculation(); b = speculation(); c = speculation(); printf("ids %d %d %d\n", a, b, c); }
BEGIN { speculate(a); printf("one\n"); }
BEGIN { speculate(b); printf("two\n"); }
BEGIN { speculate(c); printf("three\n"); }
BEGIN { commit(c); }
BEGIN { commit(b); }
BEGIN { commit(a); n = (speculation() != 0) + (speculation() != 0) + (speculation() != 0); }
BEGIN { printf("%d\n", n); exit(0); }
