/* stack() may be written where a value stands, and is none. */
BEGIN { trace(stack()); }
