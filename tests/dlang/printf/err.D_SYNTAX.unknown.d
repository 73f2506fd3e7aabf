/* No conversion has this name. */
BEGIN { printf("%y", 1); }
