/* A tick of 3 ms comes after 3 ms. */
#pragma D option quiet
BEGIN { t = timestamp; w = walltimestamp; }
tick-3ms { printf("%d %d\n", timestamp - t, walltimestamp - w); exit(0); }
