/* Without a format. */
#pragma D option quiet
BEGIN { @c["a"] = count(); @s["a"] = sum(5); printa(@c, @s); exit(0); }
