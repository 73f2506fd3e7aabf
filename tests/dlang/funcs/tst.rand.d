/* Numbers that nobody knows before. */
#pragma D option quiet

BEGIN
{
	this->same = (rand() == rand()) + (rand() == rand()) + (rand() == rand());
	printf("%d\n", this->same);
	exit(0);
}
