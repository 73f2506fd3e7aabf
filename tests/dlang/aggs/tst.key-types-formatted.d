/* A format takes them as they are in the end, in an earlier clause, too; so do those who join aggregations. */
#pragma D option quiet

BEGIN { @a[(char)1] = count(); @b[1] = count(); printa("%d %@d %@d\n", @a, @b); }
BEGIN { @a[(int64_t)1 << 33] = count(); trunc(@a, 5); }
BEGIN { printa("%d %@d\n", @a); exit(0); }
