/* Whatever follows. */
BEGIN { commit(1); commit(1); trace(1); }
