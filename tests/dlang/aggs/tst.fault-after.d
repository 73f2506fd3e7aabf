/* What was aggregated before a fault stays. */
#pragma D option quiet
BEGIN { @a = count(); trace(*(int *)0); @a = count(); }
BEGIN { exit(0); }
