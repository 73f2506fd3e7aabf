/* A width that comes with the values and is beyond reason is told in its place. */
#pragma D option quiet
BEGIN { printf("[%*d] [%.*s] [%-*d]\n", 0x7fffffff, 1, 0x7fffffff, "text", 5, 3); exit(0); }
