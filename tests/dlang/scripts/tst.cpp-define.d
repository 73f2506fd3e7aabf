/* Constants of the preprocessor, as scripts for -C have them. */
/* @options: -C */
#pragma D option quiet

#define SLOW	100
#define IS_SLOW(x)	((x) > SLOW)
#define LINE	"------"

BEGIN
{
	printf("%s %d %d\n", LINE, IS_SLOW(50), IS_SLOW(150));
#ifdef NOTHING
	printf("nothing\n");
#else
	printf("else\n");
#endif
	exit(0);
}
