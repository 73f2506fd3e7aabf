/* ++ and -- before and after. */
#pragma D option quiet

BEGIN
{
	i = 5;
	printf("%d %d ", i++, i);
	printf("%d %d ", ++i, i);
	printf("%d %d ", i--, i);
	printf("%d %d\n", --i, i);
	a["k"]++;
	++a["k"];
	printf("%d\n", a["k"]);
	self->n++;
	this->m = 3;
	this->m--;
	printf("%d %d\n", self->n, this->m);
	exit(0);
}
