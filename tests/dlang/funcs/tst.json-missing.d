/* What is not there is NULL. */
#pragma D option quiet

BEGIN
{
	this->j = "{\"a\": [1, 2], \"b\": {\"c\": 3}}";
	printf("%d\n", json(this->j, "x") == NULL);
	printf("%d\n", json(this->j, "a[2]") == NULL);
	printf("%d\n", json(this->j, "b.d") == NULL);
	printf("%d\n", json(this->j, "b[0]") == NULL);
	printf("%d\n", json(this->j, "a[0].c") == NULL);
	exit(0);
}
