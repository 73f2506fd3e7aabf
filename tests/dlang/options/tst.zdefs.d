/* zdefs: descriptions need not match.
   @options: -x zdefs */
#pragma D option quiet
nosuch:::probe { printf("never\n"); }
BEGIN { printf("fine\n"); exit(0); }
