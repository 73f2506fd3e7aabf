/* speculate() takes one number. */
BEGIN { speculate(1, 2); }
