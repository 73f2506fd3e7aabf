/* So it is with two in a clause.
   @status: 2 */
#pragma D option quiet
BEGIN { exit(1); exit(2); }
