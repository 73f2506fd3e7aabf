/* normalize() wants a divisor. */
BEGIN { @a = count(); normalize(@a); }
