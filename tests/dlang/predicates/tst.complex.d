/* Operators of all kinds. */
#pragma D option quiet

int a;
string s;

BEGIN
/(a == 0 && s == "") || 1 / a/
{
	printf("empty\n");
	a = 6;
}

BEGIN
/a / 2 == 3 && a % 4 == 2 ? a > 5 : 0/
{
	printf("six\n");
}

BEGIN
/!(a & 1) ^^ (a >> 2 != 1)/
{
	printf("even\n");
	exit(0);
}
