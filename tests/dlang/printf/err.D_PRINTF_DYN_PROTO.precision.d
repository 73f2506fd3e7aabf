/* A star wants an argument. */
BEGIN { printf("%.*d"); }
