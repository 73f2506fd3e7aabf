/* The same probe, said in many ways. */
#pragma D option quiet
BEGIN { n++; }
:BEGIN { n++; }
::BEGIN { n++; }
:::BEGIN { n++; }
dtrace:::BEGIN { n++; }
dtrace:*:*:BEGIN { n++; }
dtr*:::BEG* { n++; }
dtrace:::B?GIN { n++; }
dtrace:::[AB]EGIN { n++; }
dtrace:::[!E]*N { n++; }
BEGIN { printf("%d\n", n); exit(0); }
