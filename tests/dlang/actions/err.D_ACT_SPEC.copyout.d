/* Destructive actions may not follow speculate(). */
BEGIN { speculate(1); copyout(alloca(8), 8, 8); }
