/* And their types. */
BEGIN { @a[1, "x"] = count(); @a[1, 2] = count(); }
