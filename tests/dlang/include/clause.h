dtrace:::BEGIN
{
	printf("included ");
}
