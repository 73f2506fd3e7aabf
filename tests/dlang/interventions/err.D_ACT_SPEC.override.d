/* Destructive actions may not follow speculate(). */
BEGIN { speculate(1); override(1); }
