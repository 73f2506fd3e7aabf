/* END fires before anything of the last firing is consumed: order is that of the records, numbers are the final ones. */
#pragma D option quiet
#pragma D option switchrate=1ms
#pragma D option aggrate=1h
int i;
END { @ = sum(10); }
tick-1ms { @ = sum(1); i++; }
tick-1ms /i == 3/ { printa("%@d\n", @); normalize(@, 2); exit(0); }
END { @ = sum(10); printa("%@d\n", @); clear(@); printa("%@d\n", @); }
