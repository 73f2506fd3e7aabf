/* Destructive actions may not follow speculate(). */
BEGIN { speculate(1); snapshot("/dev/null"); }
