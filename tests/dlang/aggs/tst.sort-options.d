/* Sorted by keys, and in reverse. */
#pragma D option quiet

#pragma D option aggsortkey
#pragma D option aggsortrev

BEGIN { @["b"] = sum(1); @["a"] = sum(2); @["c"] = sum(0); exit(0); }
END { printa("%s %@d\n", @); }
