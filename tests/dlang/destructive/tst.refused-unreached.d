/* Even if it never runs.
   @status: 1 */
#pragma D option quiet
BEGIN /0/ { panic(); }
BEGIN { exit(0); }
