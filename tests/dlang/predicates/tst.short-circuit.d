/* && stops at the first that is false: what would fail behind it does not. */
#pragma D option quiet
BEGIN { p = (int *)0; }
BEGIN /p != NULL && *p == 5/ { printf("never\n"); }
BEGIN /p == NULL || *p == 5/ { printf("null\n"); }
BEGIN { exit(0); }
