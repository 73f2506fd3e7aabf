/* Clauses of one firing share this->. */
#pragma D option quiet

BEGIN
{
	this->y = 6;
}

BEGIN
{
	printf("%d\n", this->y);
	exit(0);
}
