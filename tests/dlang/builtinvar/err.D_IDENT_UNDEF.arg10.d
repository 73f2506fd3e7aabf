/* arg9 is the last. */
BEGIN { trace(arg10); }
