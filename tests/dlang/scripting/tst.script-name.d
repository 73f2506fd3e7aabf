/* $0 is the script, as it was named. */
#pragma D option quiet

BEGIN { printf("%s\n", basename($$0)); exit(0); }
