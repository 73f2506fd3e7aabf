/* Not where something was recorded. */
BEGIN { trace(1); commit(1); }
