/* Branches may be empty. */
#pragma D option quiet

BEGIN
{
	if (1) {
	} else {
		printf("never\n");
	}
	if (0) ;
	else printf("else\n");
	if (1) {
		;
	}
	exit(0);
}
