/* stack() takes a number. */
BEGIN { stack(5, 6); }
