/* A predicate may use what its own clause assigns. */
#pragma D option quiet
BEGIN /seen == 0/ { seen = 1; printf("first\n"); }
BEGIN /seen == 0/ { printf("never\n"); }
BEGIN { exit(0); }
