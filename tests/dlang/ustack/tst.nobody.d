/* Where no user code runs, a user stack is empty. */
#pragma D option quiet
BEGIN { ustack(); ustack(3); ustack(3, 100); jstack(); printf("|\n"); exit(0); }
