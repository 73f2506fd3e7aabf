/* Assigning zero removes an element. */
#pragma D option quiet

BEGIN
{
	a["x"] = 1;
	a["x"] = 0;
	s[1] = "text";
	s[1] = 0;
	printf("%d %d\n", a["x"], s[1] == NULL);
	s[1] = "again";
	printf("%s\n", s[1]);
	exit(0);
}
