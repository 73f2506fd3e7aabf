/* The predicate as well. */
#pragma D option quiet
#pragma D option bufsize=32
BEGIN /x++ > 5/ { trace(1L); trace(2L); trace(3L); }
BEGIN { printf("%d\n", x); exit(0); }
