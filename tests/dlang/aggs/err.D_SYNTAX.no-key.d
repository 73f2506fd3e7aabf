/* Brackets hold a key. */
BEGIN { @a[] = count(); }
