/* Without keys there is one row. */
#pragma D option quiet
BEGIN { @a = sum(1); @b = max(7); printa(@a, @b); exit(0); }
