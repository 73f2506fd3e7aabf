/* A pointer is a number. */
#pragma D option quiet
BEGIN { @a = sum((char *)16); exit(0); }
