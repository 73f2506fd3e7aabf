/* The value of ++x on a narrow variable. */
#pragma D option quiet

uint8_t u;

BEGIN
{
	u = 255;
	this->old = u++;
	printf("%d %d\n", this->old, u);
	exit(0);
}
