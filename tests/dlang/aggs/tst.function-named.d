/* They may be called as functions are. */
#pragma D option quiet
BEGIN { @count = count(); @sum[1] = sum(2); exit(0); }
END { printa("%@d ", @count); printa("%d %@d\n", @sum); }
