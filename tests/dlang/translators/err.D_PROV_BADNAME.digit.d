/* A provider's name does not end with a digit. */
provider mine9 {
	probe start();
};

BEGIN
{
	exit(0);
}
