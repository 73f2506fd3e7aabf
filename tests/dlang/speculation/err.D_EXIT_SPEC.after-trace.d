/* exit() is not speculative. */
BEGIN { speculate(1); trace(1); exit(0); }
