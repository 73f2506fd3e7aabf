/* Destructive actions may not follow speculate(). */
BEGIN { speculate(1); copyoutstr("x", 8, 8); }
