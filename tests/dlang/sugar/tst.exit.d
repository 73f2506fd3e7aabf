/* exit in a branch ends the program, but not before the rest of that branch. */
/* @status: 3 */
#pragma D option quiet

BEGIN
{
	if (1) {
		exit(3);
		printf("same part\n");
	}
	printf("later part\n");
}
