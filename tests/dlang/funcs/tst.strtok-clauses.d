/* It goes on in the next clauses of the same firing. */
#pragma D option quiet

BEGIN
{
	this->text = "one two three";
	this->part = strtok(this->text, " ");
}

BEGIN
/this->part != NULL/
{
	printf("%s\n", this->part);
	this->part = strtok(NULL, " ");
}

BEGIN
/this->part != NULL/
{
	printf("%s\n", this->part);
	this->part = strtok(NULL, " ");
}

BEGIN
{
	printf("%s\n", this->part);
	exit(0);
}
