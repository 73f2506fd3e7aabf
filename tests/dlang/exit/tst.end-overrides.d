/* exit() in END has the last word.
   @status: 7 */
#pragma D option quiet
BEGIN { exit(3); }
END { printf("end\n"); exit(7); printf("really\n"); }
