/* A NUL ends a string. */
#pragma D option quiet
BEGIN { printf("%s|\n", "ab\0cd"); exit(0); }
