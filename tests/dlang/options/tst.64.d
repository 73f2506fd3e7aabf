/* @options: -64

   All machines have 64 bits: the option is taken and changes nothing. */
#pragma D option quiet
BEGIN { printf("%d %d\n", sizeof (long), sizeof (void *)); exit(0); }
