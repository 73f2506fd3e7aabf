/* Without a format: an empty line, then the rows. */
#pragma D option quiet
BEGIN { @a["y", 2] = sum(5); @a["x", 1] = sum(7); printa(@a); exit(0); }
