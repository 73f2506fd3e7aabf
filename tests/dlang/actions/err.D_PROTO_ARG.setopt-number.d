/* An option's name is a string. */
BEGIN { setopt(1); }
