/* Pointers are compared as addresses. */
#pragma D option quiet

BEGIN { this->a = (char *)alloca(8); this->b = this->a + 1; printf("%d%d%d%d\n", this->a < this->b, this->a == this->b - 1, this->a != NULL, !this->a); exit(0); }
