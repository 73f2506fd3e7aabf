/* A value is signed to %d, and shown as it is by %u, %x and %o; count()'s is unsigned. */
#pragma D option quiet
BEGIN { @s = sum(-1); @c = count(); exit(0); }
END { printa("%@d %@i %@u %@x %@o\n", @s); printa("%@d %@u %@x\n", @c); }
