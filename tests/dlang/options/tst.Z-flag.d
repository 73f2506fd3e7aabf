/* -Z is the same.
   @options: -Z */
#pragma D option quiet
nosuch:::probe { printf("never\n"); }
BEGIN { printf("fine\n"); exit(0); }
