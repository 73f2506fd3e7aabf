/* All functions on the same values. */
#pragma D option quiet

BEGIN { n = 1; }
tick-1ms /n <= 4/ { @c = count(); @s = sum(n); @a = avg(n); @l = min(n); @h = max(n); @d = stddev(n * 10); n++; }
tick-1ms /n > 4/ { printa("%@d %@d %@d %@d %@d %@d\n", @c, @s, @a, @l, @h, @d); exit(0); }
