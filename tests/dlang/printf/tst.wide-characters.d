/* %wc and %lc print a wide character. */
#pragma D option quiet
BEGIN { printf("%wc%lc\n", 0x41, 0x42); exit(0); }
