/* printa() leaves what it prints. */
#pragma D option quiet
BEGIN { @a = sum(2); printa("%@d\n", @a); printa("%@d\n", @a); exit(0); }
