/* Only a probe's arguments are translated. */
provider mine {
	probe start(int a, int b) : (int a, int b, int c);
};

BEGIN
{
	exit(0);
}
