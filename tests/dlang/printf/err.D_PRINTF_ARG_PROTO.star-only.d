/* And the conversion one more. */
BEGIN { printf("%*d", 5); }
