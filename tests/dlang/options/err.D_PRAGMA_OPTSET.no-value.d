/* A size is given. */
#pragma D option aggsize
BEGIN { trace(1); }
