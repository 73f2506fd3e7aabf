/* A version has numbers. */
#pragma D binding "one" x
inline int x = 1;

BEGIN { exit(0); }
