/* A clause with several probes is one for each. */
#pragma D option quiet

BEGIN, END { printf("%s\n", probename); }
BEGIN { exit(0); }
