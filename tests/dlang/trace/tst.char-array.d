/* An array of characters is shown as text up to its end, if it has not the size of a number. */
#pragma D option quiet

struct name {
	char text[9];
	char short_text[8];
};

struct name n;

BEGIN
{
	n.text[0] = 'a';
	n.text[1] = 'b';
	n.text[2] = 'c';
	trace(n.text);
	trace("\n");
	n.short_text[0] = 'a';
	n.short_text[1] = 'b';
	trace(n.short_text);
	exit(0);
}
