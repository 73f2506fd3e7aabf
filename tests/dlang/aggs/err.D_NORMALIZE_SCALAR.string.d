/* A divisor is a number. */
BEGIN { @a = count(); normalize(@a, "5"); }
