/* END's faults are told, too. */
#pragma D option quiet
BEGIN { exit(0); }
END { printf("first\n"); }
END { trace(*(int *)0); }
END { printf("last\n"); }
