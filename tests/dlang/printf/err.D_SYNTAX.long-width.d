/* A width beyond reason is refused, and says what is not.  @says: wider than 1048576 columns */
#pragma D option quiet
BEGIN { printf("%99999999999999999999d", 1); exit(0); }
