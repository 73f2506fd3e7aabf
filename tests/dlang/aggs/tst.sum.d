/* sum() adds, negative numbers as well. */
#pragma D option quiet
BEGIN { @a = sum(5); @a = sum(-8); @a = sum(1); exit(0); }
