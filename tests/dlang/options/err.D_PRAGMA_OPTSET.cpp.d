/* A program cannot have a command started, for those that come after it. */
#pragma D option cpp
BEGIN { trace(1); }
