/* At the end, too; union members share their bytes, and the key is what they were. */
#pragma D option quiet

union both {
	int i;
	uint8_t c[4];
};
union both u;

BEGIN
{
	u.i = 1;
	@[u, "x"] = max(1);
	u.c[1] = 1;
	@[u, "x"] = max(2);
	u.i = 1;
	@[u, "x"] = max(3);
	exit(0);
}
