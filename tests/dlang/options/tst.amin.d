/* amin: the least stability that is allowed.
   @options: -x amin=Private/Private/Unknown */
#pragma D option quiet
BEGIN { printf("fine\n"); exit(0); }
