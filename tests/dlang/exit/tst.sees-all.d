/* What exit() leaves to be consumed sees what the firing aggregated, whatever the rates say. */
#pragma D option quiet
#pragma D option switchrate=1ms
#pragma D option aggrate=1h
int i;
tick-20ms { @ = count(); i++; }
tick-20ms /i == 3/ { printa("%@d\n", @); exit(0); }
tick-20ms { @ = count(); }
