/* skip() takes nothing. */
BEGIN { skip(1); }
