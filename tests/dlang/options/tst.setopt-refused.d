/* What cannot be set while it runs, or at all, is told. */
#pragma D option quiet
BEGIN { setopt("bufsize", "4k"); }
BEGIN { setopt("nosuchoption"); }
BEGIN { setopt("quiet", "perhaps"); }
BEGIN { printf("on\n"); exit(0); }
