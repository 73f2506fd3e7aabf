/* What ERROR is told of a fault in a predicate and in an action. */
#pragma D option quiet

int x;
BEGIN /1 / x/ { printf("never\n"); }
BEGIN { printf("lost"); y = 1 / x; }
ERROR { printf("action %d, kind %d\n", arg2, arg4); }
BEGIN { exit(0); }
