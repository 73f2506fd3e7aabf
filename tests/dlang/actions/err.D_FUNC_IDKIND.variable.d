/* A variable is no function. */
BEGIN { i = 1; i(); }
