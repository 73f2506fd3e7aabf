/* The greatest of negative numbers is negative. */
#pragma D option quiet
BEGIN { @high = max(-9); @high = max(-4); @low = min(9); @low = min(4); exit(0); }
