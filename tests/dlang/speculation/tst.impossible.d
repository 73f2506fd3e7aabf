/* A number that no speculation can have is an error, beyond 32 bits too; nothing of the clause is done after it. */
#pragma D option quiet
#pragma D option nspec=2

BEGIN { speculate(3); x++; }
BEGIN { speculate(-1); x++; }
BEGIN { speculate(1LL << 32); x++; }
BEGIN { commit((1LL << 32) + 1); x++; }
BEGIN { discard(1LL << 63); x++; }
ERROR { printf("error %d\n", arg4 == DTRACEFLT_ILLOP); }
BEGIN { printf("%d\n", x); exit(0); }
