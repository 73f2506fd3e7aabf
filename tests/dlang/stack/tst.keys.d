/* As keys, too. */
#pragma D option quiet
BEGIN { @a[stack()] = count(); @b[sym(16), 1] = count(); exit(0); }
