/* What printa() printed is not printed again at the end; other aggregations are. */
#pragma D option quiet
BEGIN { @a = count(); @b = sum(2); exit(0); }
END { printa(@a); }
