/* Without that option END comes at once. */
#pragma D option quiet
BEGIN { start = timestamp; }
tick-130ms { exit(0); }
END { printf("%d\n", (timestamp - start) / 1000000); }
