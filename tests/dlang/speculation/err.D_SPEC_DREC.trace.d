/* speculate() is before what is recorded. */
BEGIN { trace(1); speculate(1); }
