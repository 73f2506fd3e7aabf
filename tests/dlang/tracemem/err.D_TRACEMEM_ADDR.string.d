/* A string is no address. */
BEGIN { tracemem("abc", 3); }
