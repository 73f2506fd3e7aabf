/* exit() in END stops the END clauses behind it. */
#pragma D option quiet
BEGIN { exit(0); }
END { printf("first\n"); exit(0); }
END { printf("second\n"); }
