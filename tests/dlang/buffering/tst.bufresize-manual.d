/* Unless it must not.
   @status: 1 */
#pragma D option quiet
#pragma D option bufresize=manual
#pragma D option bufsize=1000t
BEGIN { printf("never\n"); exit(0); }
