/* exit() records its status. */
BEGIN { exit(0); speculate(1); }
