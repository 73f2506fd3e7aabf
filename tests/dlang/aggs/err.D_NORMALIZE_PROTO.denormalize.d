/* denormalize() takes no divisor. */
BEGIN { @a = count(); denormalize(@a, 1); }
