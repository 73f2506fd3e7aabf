/* Operands are evaluated from the left, each with what the ones before it did. */
#pragma D option quiet

BEGIN
{
	x = 0;
	y = x++ + x++;
	printf("%d %d\n", x, y);
	z = x-- - --x;
	printf("%d %d\n", x, z);
	w = (a = 5) + (b = a + 1);
	printf("%d %d %d\n", a, b, w);
	m[1] = m[2] = 3;
	printf("%d %d\n", m[1], m[2]);
	printf("%d\n", 1 ? 2, 3 : 4);
	exit(0);
}
