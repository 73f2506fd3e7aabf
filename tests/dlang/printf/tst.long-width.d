/* A width beyond reason is cut, and nothing else happens. */
#pragma D option quiet
BEGIN { printf("%99999999999999999999d", 1); exit(0); }
END { printf("\nend\n"); }
