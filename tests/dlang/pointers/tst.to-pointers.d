/* A pointer to a pointer. */
#pragma D option quiet

BEGIN { this->v = (int *)alloca(4); this->pp = (int **)alloca(8); *this->pp = this->v; **this->pp = 8; printf("%d\n", *this->v); exit(0); }
