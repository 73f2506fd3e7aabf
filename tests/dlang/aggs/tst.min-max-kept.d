/* min() and max() of negative numbers, and of large ones. */
#pragma D option quiet

BEGIN { @l = min(-3); @l = min(5); @h = max(-3); @h = max(-9); @u = max(0x7fffffffffffffff); exit(0); }
END { printa("%@d %@d %@d\n", @l, @h, @u); }
