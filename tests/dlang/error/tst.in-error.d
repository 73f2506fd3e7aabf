/* A fault in ERROR is only counted. */
#pragma D option quiet
BEGIN { trace(*(int *)0); }
ERROR { printf("lost %d\n", *(int *)8); }
BEGIN { exit(0); }
