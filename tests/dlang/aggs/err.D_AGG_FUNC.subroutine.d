/* And only an aggregating function's. */
BEGIN { @a = strlen("x"); }
