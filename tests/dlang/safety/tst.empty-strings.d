/* Functions of nothing. */
#pragma D option quiet

BEGIN
{
	printf("[%s][%s][%d][%d][%d]\n", strjoin("", ""), substr("", 0, 5), strtok("", "") == NULL, strlen(""), index("", ""));
	exit(0);
}
