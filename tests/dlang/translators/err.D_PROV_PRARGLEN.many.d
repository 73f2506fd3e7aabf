/* A probe has up to 255 arguments. */
provider mine {
	probe start(
	    int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int,
	    int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int,
	    int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int,
	    int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int,
	    int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int,
	    int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int,
	    int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int,
	    int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int,
	    int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int,
	    int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int,
	    int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int,
	    int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int,
	    int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int,
	    int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int,
	    int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int,
	    int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int);
};

BEGIN
{
	exit(0);
}
