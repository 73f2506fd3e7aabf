/* -q is the same.
   @options: -q */
BEGIN { trace("x"); exit(0); }
