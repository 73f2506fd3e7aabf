/* Who takes it back is told. */
#pragma D option quiet
#pragma D option noerror
#pragma D option noerror=no
BEGIN { *(char *)NULL; }
BEGIN { exit(0); }
