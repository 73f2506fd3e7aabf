/* Without the option there is one. */
#pragma D option quiet
BEGIN { x = speculation(); y = speculation(); z = speculation(); printf("%d%d%d\n", x, y, z); exit(0); }
