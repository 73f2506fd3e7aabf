/* @options: -x bufsize=1k -x switchrate=10ms

   One that it makes lower, too: of ten records in 200 ms three find room. */
#pragma D option quiet
BEGIN { setopt("switchrate", "200ms"); }
tick-20ms { printf("%s ", lltostr(++n)); }
tick-610ms { exit(0); }
