/* BEGIN has no typed argument. */
BEGIN { trace(args[0]); }
