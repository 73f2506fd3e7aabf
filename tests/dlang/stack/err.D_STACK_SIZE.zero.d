/* It is positive. */
BEGIN { stack(0); }
