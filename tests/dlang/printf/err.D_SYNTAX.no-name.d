/* A format may not end in a percent sign. */
BEGIN { printf("100%"); }
