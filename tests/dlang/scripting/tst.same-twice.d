/* @arguments: 4

   One may be named several times, or as text and as a number. */
#pragma D option quiet
BEGIN { printf("%d %d %s\n", $1, $1 + $1, $$1); exit(0); }
