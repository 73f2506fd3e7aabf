/* Where no process is, stop() and raise() do nothing. */
#pragma D option quiet
#pragma D option destructive
BEGIN { stop(); raise(SIGKILL); printf("alive\n"); exit(0); }
