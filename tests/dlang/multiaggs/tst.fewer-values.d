/* Values may be left out. */
#pragma D option quiet
BEGIN { @a = sum(1); @b = sum(2); @c = sum(3); printa("%@d %@d\n", @a, @b, @c); exit(0); }
