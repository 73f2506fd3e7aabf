/* A version that is none. */
#pragma D binding "one" x

int x;
