/* A speculation that is over can be had again. */
#pragma D option quiet
BEGIN { i = speculation(); }
BEGIN { speculate(i); printf("one\n"); }
BEGIN { commit(i); }
BEGIN { j = speculation(); }
BEGIN { speculate(j); printf("two\n"); }
BEGIN { discard(j); }
BEGIN { k = speculation(); }
BEGIN { speculate(k); printf("three\n"); }
BEGIN { commit(k); }
BEGIN { printf("%d%d%d\n", i, j, k); exit(0); }
