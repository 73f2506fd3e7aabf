/* The time stands still in a clause, and not between them. */
#pragma D option quiet

BEGIN { this->a = timestamp; this->b = timestamp; printf("%d ", this->a == this->b); t = timestamp; }
tick-1ms { printf("%d\n", timestamp > t); exit(0); }
