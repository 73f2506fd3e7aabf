/* denormalize() of what was not normalized. */
#pragma D option quiet
BEGIN { @a = sum(10); exit(0); }
END { denormalize(@a); printa("%@d\n", @a); }
