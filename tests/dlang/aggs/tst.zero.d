/* A sum of 0 is there. */
#pragma D option quiet
BEGIN { @a = sum(0); exit(0); }
