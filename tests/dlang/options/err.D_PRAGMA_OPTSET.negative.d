/* A size is not negative. */
#pragma D option aggsize=-4
BEGIN { trace(1); }
