/* && || ^^ ! give 0 or 1 of type int. */
#pragma D option quiet

BEGIN
{
	t = 5;
	f = 0;
	printf("%d%d%d%d\n", f && f, f && t, t && f, t && t);
	printf("%d%d%d%d\n", f || f, f || t, t || f, t || t);
	printf("%d%d%d%d\n", f ^^ f, f ^^ t, t ^^ f, t ^^ t);
	printf("%d%d %d\n", !f, !t, sizeof (t && t));
	exit(0);
}
