/* Where no image runs, %a shows the address itself. */
#pragma D option quiet
BEGIN { printf("%a %A\n", 0x1234, 0x1234); exit(0); }
