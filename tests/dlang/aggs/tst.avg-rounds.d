/* Averages are cut toward zero. */
#pragma D option quiet

BEGIN { @a = avg(7); @a = avg(8); @b = avg(-7); @b = avg(-8); exit(0); }
END { printa("%@d %@d\n", @a, @b); }
