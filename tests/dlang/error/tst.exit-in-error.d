/* exit() in ERROR: no further clause runs.
   @status: 9 */
#pragma D option quiet
BEGIN { trace(*(int *)0); }
ERROR { exit(9); }
BEGIN { printf("never\n"); }
END { printf("end\n"); }
