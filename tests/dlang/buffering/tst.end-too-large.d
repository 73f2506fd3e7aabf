/* Policy fill: END's records must fit.
   @status: 1 */
#pragma D option quiet
#pragma D option bufpolicy=fill
#pragma D option bufsize=64
BEGIN { printf("never\n"); exit(0); }
END { trace(execname); }
