/* Jobs of the work list: functions with their arguments, in order. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

string order;

fbt::client_run:entry
{
	order = strjoin(order, lltostr(arg0, 16));
	n++;
}

END
{
	printf("%d %s\n", n, order);
}
