/* A precision, too.  @says: wider than 1048576 columns */
BEGIN { printf("%.1048577d", 1); exit(0); }
