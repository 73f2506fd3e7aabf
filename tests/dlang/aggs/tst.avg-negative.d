/* -7 / 2 is -3. */
#pragma D option quiet
BEGIN { @a = avg(-3); @a = avg(-4); exit(0); }
