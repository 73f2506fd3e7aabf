/* Of itself exit() prints nothing. */
BEGIN { exit(0); trace(1); }
