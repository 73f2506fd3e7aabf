/* @options: -x bufpolicy=ring -x bufsize=128

   Aggregations have a buffer of their own: nothing of them is overwritten. */
#pragma D option quiet

int n;
tick-1ms { @ = count(); @k[n & 1] = sum(n); n++; printf("%d", n); }
tick-1ms /n == 100/ { exit(0); }
END { clear(@k); }
