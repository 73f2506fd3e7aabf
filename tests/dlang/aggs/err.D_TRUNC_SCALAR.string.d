/* How many is a number. */
BEGIN { @a = count(); trunc(@a, "5"); }
