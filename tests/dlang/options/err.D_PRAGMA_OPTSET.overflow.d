/* A size has 64 bits. */
#pragma D option aggsize=99999999999999999999
BEGIN { trace(1); }
