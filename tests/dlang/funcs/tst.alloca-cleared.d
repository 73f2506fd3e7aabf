/* What a clause allocates is zero, whatever an earlier one left there. */
#pragma D option quiet

BEGIN { p = (int *)alloca(16); *p = 7; p[3] = 9; }
BEGIN { this->q = (int *)alloca(16); printf("%d %d\n", *this->q, this->q[3]); exit(0); }
