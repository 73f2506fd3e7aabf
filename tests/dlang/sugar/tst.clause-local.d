/* this-> variables are the same in all branches. */
#pragma D option quiet

BEGIN
{
	this->x = 1;
	if (this->x == 1) {
		this->x = 2;
		this->s = "two";
	} else {
		this->s = "other";
	}
	printf("%d %s\n", this->x, this->s);
	exit(0);
}
