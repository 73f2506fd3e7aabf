/* What a probe's argument is turned into needs a translator. */
struct out {
	int a;
};

provider mine {
	probe start(int x) : (struct out x);
};

BEGIN
{
	exit(0);
}
