/* What fits is printed at the end. */
#pragma D option quiet
#pragma D option bufpolicy=fill
BEGIN { printf("one\n"); }
tick-1s /i++ == 2/ { printf("two\n"); exit(0); }
END { printf("three\n"); }
