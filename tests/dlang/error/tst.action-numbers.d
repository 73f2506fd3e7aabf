/* Each argument of printf() is an action; an aggregation is one, and one for each key, and one for its function. */
#pragma D option quiet
BEGIN { printf("%d%d", 1, *(int *)0); }
BEGIN { printf("a"); printf("b"); trace(*(int *)0); }
BEGIN { trace(1); @a[1, *(int *)8] = count(); }
BEGIN { @b[1, 2] = sum(*(int *)8); }
BEGIN { @c = count(); trace(*(int *)0); }
BEGIN { tracemem(alloca(4), 4, 4); trace(*(int *)0); }
BEGIN { @d = quantize(1, *(int *)0); }
BEGIN { @e = quantize(*(int *)0, 1); }
ERROR { printf("%d\n", arg2); }
BEGIN { exit(0); }
