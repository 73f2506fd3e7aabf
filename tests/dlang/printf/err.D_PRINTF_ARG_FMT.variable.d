/* A format is a string constant. */
BEGIN { s = "x"; printf(s); }
