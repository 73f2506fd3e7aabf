/* The status is any expression.
   @status: 6 */
#pragma D option quiet
BEGIN { x = 2; exit(x * 3); }
