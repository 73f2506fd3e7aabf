/* speculate() wants a number. */
BEGIN { speculate(); }
