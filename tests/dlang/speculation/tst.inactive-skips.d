/* So does a speculation that nobody asked for. */
#pragma D option quiet
#pragma D option nspec=3
BEGIN { speculate(2); x = 2; printf("never\n"); }
BEGIN { commit(3); }
BEGIN { x += 10; printf("%d\n", x); exit(0); }
