/* The address of the element after the last is that of the array's end. */
#pragma D option quiet
int a[5];
struct s {
	int n;
	short m[3];
} v;

BEGIN
{
	this->end = &a[5];
	printf("%d %d\n", this->end - &a[0], (int64_t)this->end - (int64_t)&a[4]);
	printf("%d\n", (int64_t)&v.m[3] - (int64_t)&v.n);
	exit(0);
}
