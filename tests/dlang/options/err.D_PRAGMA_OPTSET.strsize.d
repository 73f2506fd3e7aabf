/* A size is a number. */
#pragma D option strsize=big
BEGIN { trace(1); }
