/* Parts between separators, of which any number may stand together. */
#pragma D option quiet

BEGIN
{
	printf("[%s]", strtok(",,a,b;;c,", ",;"));
	printf("[%s]", strtok(NULL, ",;"));
	printf("[%s]", strtok(NULL, ",;"));
	printf("%d", strtok(NULL, ",;") == NULL);
	printf("%d\n", strtok(NULL, ",;") == NULL);
	exit(0);
}
