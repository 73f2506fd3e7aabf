/* Bytes beyond ASCII pass as they are. */
#pragma D option quiet
BEGIN { printf("gr\303\274n %s\n", "\303\274ber"); exit(0); }
