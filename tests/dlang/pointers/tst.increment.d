/* ++ moves a pointer by an element. */
#pragma D option quiet

BEGIN { this->p = (int *)alloca(16); this->p[0] = 1; this->p[1] = 2; this->p[2] = 3; this->q = this->p; this->x = *this->q++; this->y = *++this->q; printf("%d %d\n", this->x, this->y); exit(0); }
