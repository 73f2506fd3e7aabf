/* A file that cannot be: the output stays where it is. */
#pragma D option quiet
#pragma D option destructive
BEGIN { freopen("/no/such/place"); printf("kept\n"); exit(0); }
