/* A key that fails: nothing is aggregated. */
#pragma D option quiet
BEGIN { @a[*(int *)0] = count(); }
BEGIN { @a[1] = count(); exit(0); }
