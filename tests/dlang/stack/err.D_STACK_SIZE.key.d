/* As a key, too. */
BEGIN { @a[stack(0)] = count(); }
