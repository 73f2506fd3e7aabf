/* Functions of nothing. */
#pragma D option quiet

BEGIN
{
	printf("[%s][%s][%s][%d][%d]\n", strjoin("", ""), substr("", 0, 5), strtok("", ""), strlen(""), index("", ""));
	exit(0);
}
