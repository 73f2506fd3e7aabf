/* Values at the ends of their types. */
#pragma D option quiet
BEGIN { @a = avg(1); @a = avg(2); @b = stddev(5); @m = min(-3); @m = min(4294967296); @x = max((unsigned char)255); @u = max(-1UL); @s = sum(1UL << 63); @s = sum(1UL << 63); @n = sum(9223372036854775807); @n = sum(1); exit(0); }
