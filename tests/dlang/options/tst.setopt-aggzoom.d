/* A picture is drawn by the option as it is when it is printed. */
#pragma D option quiet

BEGIN
{
	@ = lquantize(1, 0, 3); @ = lquantize(1, 0, 3); @ = lquantize(2, 0, 3);
	printa(@);
	setopt("aggzoom");
	printa(@);
	setopt("aggzoom", "no");
	printa(@);
	exit(0);
}
