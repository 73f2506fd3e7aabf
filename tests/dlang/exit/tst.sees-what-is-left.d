/* What was printed before exit() was printed then; what is left for the end is complete. */
#pragma D option quiet
#pragma D option switchrate=1ms
#pragma D option aggrate=1h
int i;
tick-1ms { @a = count(); @b[i] = count(); i++; }
tick-1ms /i == 2/ { printa("%@d\n", @a); trunc(@b); }
tick-1ms /i == 4/ { @a = count(); exit(0); }
END { printa("%@d\n", @a); }
