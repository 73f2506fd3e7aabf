/* breakpoint() takes nothing. */
BEGIN { breakpoint(1); }
