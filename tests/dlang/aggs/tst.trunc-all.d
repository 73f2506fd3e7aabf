/* trunc() without a number removes all keys. */
#pragma D option quiet
BEGIN { @a[1] = count(); @a[2] = count(); exit(0); }
END { trunc(@a); printa("%d\n", @a); }
