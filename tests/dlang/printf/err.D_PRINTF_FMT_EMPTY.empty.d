/* An empty format prints nothing. */
BEGIN { printf(""); }
