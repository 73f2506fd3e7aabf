/* A cast to a narrower type or to another sign cuts; a signed value is cut before it is widened; the same type
   changes nothing, and neither does widening without a sign. Arguments are converted as by a cast. */
#pragma D option quiet

int i;
unsigned int u;

BEGIN
{
	w = (int64_t)1 << 40;
	i = w + 9; u = w + 9;
	printf("%d %d %d\n", (int64_t)i == 9, (int64_t)u == w + 9, (uint64_t)i == 9);
	printf("%d %d %d\n", (int)i == w + 9, (unsigned int)i == 9, (short)i == 9);
	printf("%d %d\n", (int)u == 9, (unsigned int)u == w + 9);
	printf("%s %s %s\n", lltostr(w + 9), lltostr(i), lltostr(i - w));
	exit(0);
}
