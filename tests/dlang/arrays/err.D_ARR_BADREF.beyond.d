/* A constant index is inside the array. */
int a[3];

BEGIN
{
	a[3] = 1;
}
