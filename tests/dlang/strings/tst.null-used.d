/* NULL is not indexed, measured, searched or joined; comparing and assigning it needs no text. */
#pragma D option quiet

BEGIN { self->s = "abc"; self->s = NULL; }
BEGIN { trace(self->s[0]); }
BEGIN { trace(strlen(self->s)); }
BEGIN { trace(substr(self->s, 0)); }
BEGIN { trace(index("abc", self->s)); }
BEGIN { trace(strtok("abc", self->s)); }
BEGIN { trace(basename(self->s)); }
BEGIN { trace(strjoin("a", self->s)); }
BEGIN { trace(strchr(self->s, 'a')); }
BEGIN { trace(strtoll(self->s)); }
ERROR { errors++; }
BEGIN
{
	printf("%d\n", errors);
	this->t = self->s;
	self->u = this->t;
	printf("%d %d %d ", self->s == "", self->u == NULL, this->t == self->s);
	printf("%d %d %d\n", self->s != "", self->u < "a", "" < self->u);
	exit(0);
}
