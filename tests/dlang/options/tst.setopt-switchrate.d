/* @options: -x bufsize=1k -x switchrate=10s

   A rate that setopt() makes higher counts at once: the buffer is emptied before it is full. */
#pragma D option quiet
BEGIN { setopt("switchrate", "10ms"); }
tick-20ms { printf("%s ", lltostr(++n)); }
tick-20ms /n == 20/ { exit(0); }
