/* What was assigned before the fault stays, what was recorded does not. */
#pragma D option quiet
BEGIN { x = 7; printf("lost\n"); y = *(int *)0; x = 8; }
BEGIN { printf("%d %d\n", x, y); exit(0); }
