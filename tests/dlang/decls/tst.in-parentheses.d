/* Declarators in parentheses. */
#pragma D option quiet

int (x);
int *(y);
int (*z)[4];
char *(*w[2])(int);

BEGIN
{
	printf("%d %d %d %d\n", sizeof (x), sizeof (y), sizeof (z), sizeof (w));
	exit(0);
}
