/* 64 bits without a sign: products, divisions, shifts. */
#pragma D option quiet

uint64_t u;

BEGIN { u = -1; printf("%d %d %x\n", u / 2, u % 10, u >> 60); u = (uint64_t)1 << 63; printf("%d %d\n", u > 0, u * 2); exit(0); }
