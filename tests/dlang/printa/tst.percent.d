/* %% in a format. */
#pragma D option quiet
BEGIN { @a[1] = sum(50); printa("%d: %@d%%\n", @a); exit(0); }
