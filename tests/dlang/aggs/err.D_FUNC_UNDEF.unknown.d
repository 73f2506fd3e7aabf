/* A function that there is not. */
BEGIN { @a = median(1); }
