/* ftruncate() takes nothing. */
BEGIN { ftruncate(1); }
