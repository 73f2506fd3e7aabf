/* A ring keeps what fits: eight records of 16 bytes, exit()'s among them. */
#pragma D option bufpolicy=ring
#pragma D option bufsize=128
#pragma D option quiet
int i;
tick-1ms { printf("%d ", i++); }
tick-1ms /i == 50/ { exit(0); }
