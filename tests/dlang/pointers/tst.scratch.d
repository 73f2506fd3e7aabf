/* Memory of alloca is written and read through pointers. */
#pragma D option quiet

BEGIN
{
	p = (int *)alloca(16);
	p[0] = 1;
	p[1] = 2;
	*(p + 2) = 3;
	p[3] = 4;
	printf("%d %d %d %d\n", *p, *(p + 1), p[2], *(3 + p));
	printf("%d\n", 1[p]);
	p[1] += 10;
	p[2]++;
	(*p)--;
	printf("%d %d %d\n", *p, p[1], p[2]);
	exit(0);
}
