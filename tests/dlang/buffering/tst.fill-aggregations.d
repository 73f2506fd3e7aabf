/* @options: -x bufpolicy=fill -x bufsize=4k

   Aggregations go on under fill until the buffer is full. */
#pragma D option quiet

tick-1ms { @ = count(); }
tick-1ms /n++ == 50/ { exit(0); }
END { printa("%@d\n", @); }
