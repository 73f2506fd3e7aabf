/* NULL goes where strings go: elements, variables, conditions, inlines; who reads it ends. */
#pragma D option quiet
BEGIN { a["x", 1] = "one"; self->b[2] = "two"; printf("%s %s %d %d\n", a["x", 1], self->b[2], a["x", 2] == NULL, self->b[3] == ""); a["x", 1] = self->b[3]; printf("%d\n", a["x", 1] == NULL); }
BEGIN { this->n = a["x", 1]; c = this->n == NULL ? "null" : this->n; printf("%s\n", c); }
inline string pick = probename == "END" ? NULL : "begin";
BEGIN { printf("%s\n", pick); exit(0); }
END { printf("%d ", pick == NULL); printf("%s\n", pick); }
