/* Numbers in other bases, with # too. */
#pragma D option quiet

BEGIN { printf("%x %X %o %#x %#o %u\n", 255, 255, 8, 255, 8, 7); printf("%x %o\n", -1, (char)-1); exit(0); }
