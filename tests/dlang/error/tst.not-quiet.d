/* Without -q ERROR has its line as other probes. */
BEGIN { trace(*(int *)0); }
ERROR { trace(arg2); exit(0); }
