/* No argument without a conversion. */
BEGIN { printf("text", 1); }
