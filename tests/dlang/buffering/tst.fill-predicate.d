/* @options: -x bufpolicy=fill -x bufsize=128

   A clause that records nothing needs no room: it goes on in a buffer that is nearly full. */
#pragma D option quiet

tick-1ms { n++; }
tick-1ms /n <= 3/ { printf("%d\n", n); }
tick-1ms /n == 100/ { printf("%d\n", n); exit(0); }
