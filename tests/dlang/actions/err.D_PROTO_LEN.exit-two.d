/* exit() wants one status. */
BEGIN { exit(0, 1); }
