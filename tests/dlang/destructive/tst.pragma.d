/* The program may allow itself. */
#pragma D option quiet
#pragma D option destructive
BEGIN { chill(1000); printf("fine\n"); exit(0); }
