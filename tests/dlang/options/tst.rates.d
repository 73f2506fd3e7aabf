/* Rates in all units; a bare number is ns. */
#pragma D option quiet
#pragma D option switchrate=1s
#pragma D option aggrate=1sec
#pragma D option cleanrate=100ms
#pragma D option statusrate=100msec
#pragma D option switchrate=10us
#pragma D option switchrate=10usec
#pragma D option switchrate=10000000ns
#pragma D option switchrate=10000000nsec
#pragma D option switchrate=1m
#pragma D option switchrate=1min
#pragma D option switchrate=1h
#pragma D option switchrate=1hour
#pragma D option switchrate=1d
#pragma D option switchrate=1day
#pragma D option switchrate=10hz
#pragma D option switchrate=5000000
BEGIN { printf("fine\n"); exit(0); }
