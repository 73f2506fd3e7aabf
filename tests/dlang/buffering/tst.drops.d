/* A record larger than the buffer is dropped, and all that its clause does. */
#pragma D option quiet
#pragma D option bufsize=64
#pragma D option strsize=256
BEGIN { trace(execname); x = 1; }
BEGIN { printf("%d\n", x); exit(0); }
