/* strjoin and strlen with variables of all scopes. */
#pragma D option quiet

BEGIN
{
	s = "";
	s = strjoin(s, "a");
	s = strjoin(s, "b");
	self->t = strjoin(s, s);
	this->u = strjoin(self->t, s);
	printf("%s %s %s %d\n", s, self->t, this->u, strlen(this->u));
	exit(0);
}
