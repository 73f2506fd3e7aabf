/* trunc() keeps the largest, or the smallest. */
#pragma D option quiet

BEGIN { @a["x"] = sum(1); @a["y"] = sum(2); @a["z"] = sum(3); @b["x"] = sum(1); @b["y"] = sum(2); @b["z"] = sum(3); exit(0); }
END { trunc(@a, 1); trunc(@b, -1); printa("a %s %@d\n", @a); printa("b %s %@d\n", @b); }
