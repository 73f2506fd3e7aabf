/* A provider that a program declares has no probes of its own yet. */
#pragma D option quiet

provider mine {
	probe start(int, char *);
	probe stop();
};

BEGIN
{
	printf("declared\n");
	exit(0);
}
