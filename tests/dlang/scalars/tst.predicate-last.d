/* The statements of a clause are read before its predicate: they give the variable its type. */
#pragma D option quiet

BEGIN
/!this->x/
{
	this->x = 1;
	printf("%d\n", this->x);
	exit(0);
}
