/* Nothing is said of clauses that fail; ERROR still fires, and the exit status is as it was. */
#pragma D option quiet
#pragma D option noerror
BEGIN { *(char *)NULL; }
BEGIN { trace(strlen(NULL)); }
ERROR { printf("%d ", ++n); }
BEGIN { printf("goes on\n"); exit(0); }
