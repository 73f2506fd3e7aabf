/* It is positive. */
BEGIN { stack(-1); }
