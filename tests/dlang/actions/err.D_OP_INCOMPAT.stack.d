/* stack() is an action: its frames are no value of an expression. */
BEGIN { x = stack(); }
