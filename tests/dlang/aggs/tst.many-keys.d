/* A dozen keys. */
#pragma D option quiet
BEGIN { @a[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] = count(); exit(0); }
END { printa("%d%d%d%d%d%d%d%d%d%d%d%d %@d\n", @a); }
