/* A clause-local variable goes on in the next clause of the firing. */
#pragma D option quiet

BEGIN { this->x = 5; }
BEGIN { this->x++; printf("%d\n", this->x); exit(0); }
