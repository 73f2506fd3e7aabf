/* %% takes no argument. */
BEGIN { printf("%%", 1); }
