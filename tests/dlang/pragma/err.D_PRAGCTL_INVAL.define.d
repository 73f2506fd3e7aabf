/* The preprocessor's are not D's: they need -C. */
#define X 5

BEGIN
{
	exit(0);
}
