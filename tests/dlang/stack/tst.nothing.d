/* Without an image a stack is empty, and an address is a number. */
#pragma D option quiet
BEGIN { stack(); stack(5); sym(16); func(16); mod(16); usym(16); uaddr(16); printf("|\n"); exit(0); }
