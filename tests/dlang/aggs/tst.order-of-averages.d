/* Averages are compared as averages. */
#pragma D option quiet
BEGIN { @a["low"] = avg(100); @a["low"] = avg(0); @a["high"] = avg(60); exit(0); }
END { printa("%s %@d\n", @a); }
