/* Text is no number. */
BEGIN { @a = sum("1"); }
