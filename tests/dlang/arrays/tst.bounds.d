/* The first and the last element; an array of one may be the beginning of more, and a pointer's end is not known. */
#pragma D option quiet

struct message {
	int length;
	char data[1];
};
int a[3];

BEGIN
{
	a[0] = 5;
	a[2] = 7;
	p = (struct message *)alloca(16);
	p->data[3] = 'x';
	((int *)p)[3] = 9;
	printf("%d %d %c %d\n", a[0], a[2], p->data[3], ((int *)p)[3]);
	exit(0);
}
