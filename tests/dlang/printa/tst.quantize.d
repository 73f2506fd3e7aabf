/* A distribution stands where its %@ does. */
#pragma D option quiet
BEGIN { @q["k"] = quantize(1); printa("%s:%@dend\n", @q); exit(0); }
