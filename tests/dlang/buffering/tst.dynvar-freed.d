/* @options: -x dynvarsize=1k

   An element that is assigned 0 makes room for another. */
#pragma D option quiet

int n;
tick-1ms { x[n] = n + 1; x[n] = 0; n++; }
tick-1ms /n == 300/ { x[7] = 8; printf("%d %d\n", x[7], x[299]); exit(0); }
