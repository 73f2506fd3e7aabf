/* Each with its divisor. */
#pragma D option quiet
BEGIN { @a = sum(100); @b = sum(100); normalize(@b, 10); printa("%@d %@d\n", @a, @b); exit(0); }
