/* What is done when records are consumed is done in their order. */
#pragma D option quiet
BEGIN { @a = sum(4); normalize(@a, 2); printa("%@d ", @a); denormalize(@a); printa("%@d ", @a); }
BEGIN { clear(@a); printa("%@d\n", @a); exit(0); }
