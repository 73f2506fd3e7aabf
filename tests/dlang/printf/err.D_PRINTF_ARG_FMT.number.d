/* A format is a string constant. */
BEGIN { printf(10); }
