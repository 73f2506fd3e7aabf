/* normalize() takes one divisor. */
BEGIN { @a = count(); normalize(@a, 1, 2); }
