/* Text is no number. */
BEGIN { @a = quantize(execname); }
