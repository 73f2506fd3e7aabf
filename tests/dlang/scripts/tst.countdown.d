/* A countdown with arguments that may be left out. */
#pragma D option quiet

#pragma D option defaultargs

dtrace:::BEGIN
{
	left = $1 ? $1 : 3;
	printf("%s: %d to go\n", $$2 == "" ? "default" : $$2, left);
}

profile:::tick-1sec
/left > 0/
{
	printf("%d ", left--);
}

profile:::tick-1sec
/left == 0/
{
	printf("lift-off\n");
	exit(0);
}
