/* More conversions than keys. */
BEGIN { @a[1] = count(); printa("%d %d %@d", @a); }
