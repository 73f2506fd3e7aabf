/* Rows are sorted by their values first, then by keys. */
#pragma D option quiet

BEGIN { @["b"] = count(); @["a"] = count(); @["c"] = count(); @["c"] = count(); exit(0); }
END { printa("%s=%@d ", @); printf("\n"); }
