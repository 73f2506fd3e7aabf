/* @options: -x statusrate=100ms

   exit() is seen when the status is looked at: END comes then. */
#pragma D option quiet
BEGIN { start = timestamp; }
tick-130ms { exit(0); }
END { printf("%d\n", (timestamp - start) / 1000000); }
