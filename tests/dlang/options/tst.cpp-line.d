/* Where a macro is wrong, the line is the program's.
   @options: -C */
#pragma D option quiet
#ifdef sparc
BEGIN { printf("old\n"); exit(0); }
#else
BEGIN { printf("new\n"); exit(0); }
#endif
