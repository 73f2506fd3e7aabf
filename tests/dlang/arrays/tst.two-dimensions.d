/* Arrays of arrays. */
#pragma D option quiet

int m[2][3];

BEGIN
{
	m[0][0] = 1;
	m[1][2] = 6;
	m[0][2] = m[1][2] * 2;
	printf("%d %d %d %d\n", m[0][0], m[0][2], m[1][0], m[1][2]);
	printf("%d %d\n", sizeof (m), sizeof (m[0]));
	exit(0);
}
