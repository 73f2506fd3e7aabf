/* Values are taken as signed numbers. */
#pragma D option quiet
BEGIN { @a = sum((uint64_t)0xffffffffffffffff); @b = max((unsigned int)0xffffffff); exit(0); }
