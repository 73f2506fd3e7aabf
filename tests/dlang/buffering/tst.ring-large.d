/* A ring that is large enough loses nothing. */
#pragma D option quiet
#pragma D option bufsize=4k
#pragma D option bufpolicy=ring
BEGIN { printf("one\n"); }
BEGIN { printf("two\n"); exit(0); }
