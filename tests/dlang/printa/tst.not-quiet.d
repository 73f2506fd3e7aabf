/* Without -q behind the columns. */
BEGIN { @a[1] = count(); printa("%d %@d\n", @a); exit(0); }
