/* normalize() divides sums and averages, and leaves the rest. */
#pragma D option quiet

BEGIN { @s = sum(100); @a = avg(100); exit(0); }
END { normalize(@s, 10); normalize(@a, 10); printa("%@d %@d\n", @s, @a); denormalize(@s); printa("%@d\n", @s); }
