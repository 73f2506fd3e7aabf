/* Nor does naming its key. */
BEGIN { @a[1] = count(); @a[1]; }
