/* Expressions of int are shown in 32 bits. */
#pragma D option quiet
BEGIN { x = -2; printf("%x %x %u\n", x, -2 + 1, x); exit(0); }
