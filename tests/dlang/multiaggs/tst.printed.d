/* None of them is printed at the end. */
#pragma D option quiet
BEGIN { @a = sum(1); @b = sum(2); @c = sum(3); exit(0); }
END { printa("%@d %@d\n", @a, @b); }
