/* ++ makes an element, and counts on. */
#pragma D option quiet

BEGIN { c["a"]++; c["a"]++; c["b"] += 5; printf("%d %d\n", c["a"], c["b"]); exit(0); }
