/* Memory as text: every NUL but the last is another character. */
#pragma D option quiet

BEGIN
{
	this->p = (char *)alloca(6);
	this->p[0] = 'a'; this->p[2] = 'b'; this->p[4] = 'c';
	printf("[%s]\n", memstr(this->p, '-', 6));
	exit(0);
}
