/* printa() of nothing prints an empty line without a format, and nothing with one. */
#pragma D option quiet
BEGIN /0/ { @a = count(); }
BEGIN { exit(0); }
END { printa("%@d\n", @a); printf("-\n"); printa(@a); printf("-\n"); }
