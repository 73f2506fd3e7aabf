/* A star takes its width from the keys. */
#pragma D option quiet
BEGIN { @a[6, "k"] = sum(10); printa("[%*s] %@d\n", @a); exit(0); }
