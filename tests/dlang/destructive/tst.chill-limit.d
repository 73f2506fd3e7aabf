/* At most half a second at a time. */
#pragma D option quiet
#pragma D option destructive
BEGIN { chill(500000001); }
ERROR { printf("%d\n", arg4 == DTRACEFLT_ILLOP); }
BEGIN { exit(0); }
