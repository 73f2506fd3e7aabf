/* clear() leaves the divisor. */
#pragma D option quiet
BEGIN { @a["x"] = sum(1000); exit(0); }
END { normalize(@a, 100); clear(@a); printa("%s %@d\n", @a); }
