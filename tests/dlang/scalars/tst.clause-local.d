/* this-> is shared by the clauses of one firing. */
#pragma D option quiet

BEGIN
{
	this->x = 5;
	this->s = "text";
}

BEGIN
{
	printf("%d %s\n", this->x, this->s);
	this->x++;
}

BEGIN
/this->x == 6/
{
	printf("%d\n", this->x);
	exit(0);
}
