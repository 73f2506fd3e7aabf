/* exit() is not speculative. */
BEGIN { speculate(1); exit(0); }
