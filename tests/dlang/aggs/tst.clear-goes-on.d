/* clear() keeps keys, and counting goes on. */
#pragma D option quiet

int n;
BEGIN { @["k"] = count(); }
tick-1ms /n == 0/ { clear(@); }
tick-1ms /n == 1/ { @["k"] = count(); @["k"] = count(); }
tick-1ms /n++ == 2/ { printa("%s %@d\n", @); exit(0); }
