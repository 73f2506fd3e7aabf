/* Conversions take the keys in order, %@ the value. */
#pragma D option quiet
BEGIN { @a["y", 2] = sum(5); @a["x", 1] = sum(7); printa("%s=%d: %@d\n", @a); exit(0); }
