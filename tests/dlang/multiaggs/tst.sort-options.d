/* aggsortpos says whose values count; aggsortrev and aggsortkey as for one aggregation. */
#pragma D option quiet
#pragma D option aggsortpos=1
BEGIN { @a[1] = sum(3); @a[2] = sum(1); @b[1] = sum(5); @b[3] = sum(9); @c[2] = max(-4);
printa("%d %@d %@d %@d\n", @a, @b, @c); setopt("aggsortrev"); printa("%d %@d %@d %@d\n", @a, @b, @c); setopt("aggsortkey"); printa("%d %@d %@d %@d\n", @a, @b, @c); exit(0); }
