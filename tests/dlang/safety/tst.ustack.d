/* ustack() wherever a probe fires. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

fbt:::,
profile-4999,
BEGIN,
END
{
	@[ustack(8)] = count();
	n = 1;
}

ERROR
{
	printf("fault\n");
}

END
{
	trunc(@);
	printf("%d\n", n);
}
