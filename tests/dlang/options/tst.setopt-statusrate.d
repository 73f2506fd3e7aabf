/* The rate of looks at the status is not among those that a program may change. */
#pragma D option quiet
BEGIN { setopt("statusrate", "10ms"); exit(0); }
