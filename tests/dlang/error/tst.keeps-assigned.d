/* What was assigned before the fault stays, what was recorded does not. */
#pragma D option quiet

int z;
BEGIN { a = 5; printf("lost\n"); b = 1 / z; a = 6; }
BEGIN { printf("%d %d\n", a, b); exit(0); }
