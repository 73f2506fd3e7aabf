/* A fault in the predicate: action 0; the clause does not run. */
#pragma D option quiet
BEGIN / *(int *)0 / { printf("never\n"); }
ERROR { printf("%d\n", arg2); exit(0); }
