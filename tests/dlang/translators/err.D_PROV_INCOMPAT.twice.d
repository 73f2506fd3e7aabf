/* A provider is not declared again with another probe. */
provider mine {
	probe start(int);
};

provider mine {
	probe start(char *);
};

BEGIN
{
	exit(0);
}
