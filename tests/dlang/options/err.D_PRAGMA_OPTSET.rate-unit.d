/* A rate has a unit of time. */
#pragma D option switchrate=5k
BEGIN { trace(1); }
