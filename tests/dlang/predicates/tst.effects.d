/* A predicate may have effects. */
#pragma D option quiet
BEGIN /i++ == 0/ { printf("first %d\n", i); }
BEGIN /i++ == 0/ { printf("never\n"); }
BEGIN /(j = 5) == 5/ { printf("%d %d\n", i, j); exit(0); }
