/* What is printed at the end is divided as well. */
#pragma D option quiet
BEGIN { @a["x"] = sum(1000); exit(0); }
END { normalize(@a, 100); }
