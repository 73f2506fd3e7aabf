/* Keys of integers and strings, alone and together. */
#pragma D option quiet

BEGIN
{
	a[1] = "one";
	a[2] = "two";
	b["x"] = 1;
	c["x", 1] = 11;
	c["x", 2] = 12;
	c["y", 1] = 21;
	printf("%s %s %d\n", a[1], a[2], a[3] == NULL);
	printf("%d %d\n", b["x"], b["y"]);
	printf("%d %d %d %d\n", c["x", 1], c["x", 2], c["y", 1], c["y", 2]);
	exit(0);
}
