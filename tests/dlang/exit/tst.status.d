/* The status is the tool's.
   @status: 42 */
#pragma D option quiet
BEGIN { exit(42); }
