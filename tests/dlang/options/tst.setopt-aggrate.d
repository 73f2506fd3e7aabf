/* @options: -x aggsize=1k -x aggrate=10s -x switchrate=10ms

   The rate at which aggregations are taken from their buffer, which has room for a few keys. */
#pragma D option quiet
BEGIN { setopt("aggrate", "10ms"); }
tick-20ms { @[++n] = count(); }
tick-20ms /n == 40/ { exit(0); }
END { printf("%d\n", n); trunc(@); }
