/* cpp: macros of C, in the program.
   @options: -C */
#pragma D option quiet
#define GREETING "hello"
#define TWICE(x) ((x) + (x))
#ifdef NOTHING
BEGIN { printf("never\n"); }
#endif
BEGIN { printf("%s %d\n", GREETING, TWICE(4)); exit(0); }
