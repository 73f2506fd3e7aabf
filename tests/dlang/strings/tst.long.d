/* Longer than strsize: cut. */
/* @options: -x strsize=10 */
#pragma D option quiet

BEGIN
{
	a["k"] = "0123456789abcdef";
	self->s = a["k"];
	printf("%s %d\n", self->s, strlen(a["k"]));
	printf("%d\n", self->s == "0123456789");
	exit(0);
}
