/* @options: -x statusrate=10ms

   The status may be looked at just then. */
#pragma D option quiet
BEGIN { start = timestamp; }
tick-130ms { exit(0); }
END { printf("%d\n", (timestamp - start) / 1000000); }
