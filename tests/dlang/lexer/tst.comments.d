/* Comments are blanks, everywhere: * ** / // */
#pragma D option quiet

BEGIN /* here */ , /**/ BEGIN /***/
/* there */
/ 1 /* in a predicate */ /
{
	x = /* " */ 2 /* ' */ + /***/ 3;
	printf("%d\n", x); /* @#$ */
	exit(0)/*;*/;
}
/*
 * at the end
 */
