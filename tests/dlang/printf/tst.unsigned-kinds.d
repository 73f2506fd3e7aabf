/* %d shows an unsigned argument as such; %u any argument. */
#pragma D option quiet

BEGIN { printf("%d %u %d\n", (unsigned int)-1, -1, (unsigned char)200); exit(0); }
