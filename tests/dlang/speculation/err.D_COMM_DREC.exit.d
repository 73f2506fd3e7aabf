/* exit() records its status. */
BEGIN { exit(0); commit(1); }
