/* Memory of the clause, all zero. */
#pragma D option quiet

BEGIN
{
	this->p = (int *)alloca(3 * sizeof (int));
	this->p[2] = 7;
	printf("%d %d %d\n", this->p[0], this->p[1], this->p[2]);
	this->q = (int *)alloca(4);
	printf("%d %d\n", this->q[0], this->q != this->p);
	exit(0);
}
