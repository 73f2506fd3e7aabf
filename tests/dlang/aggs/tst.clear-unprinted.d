/* What was cleared is printed at the end, as it is. */
#pragma D option quiet
BEGIN { @a["x"] = sum(3); exit(0); }
END { clear(@a); }
