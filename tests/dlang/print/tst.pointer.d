/* A pointer: the address. */
#pragma D option quiet
BEGIN { print((char *)16); print((void *)0); exit(0); }
