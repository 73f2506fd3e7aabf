/* A version stands in quotes. */
#pragma D binding 1.0 x

int x;
