/* A probe is declared once. */
provider mine {
	probe start(int);
	probe start(char);
};

BEGIN
{
	exit(0);
}
