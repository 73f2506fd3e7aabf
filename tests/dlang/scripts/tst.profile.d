/* profile-: where the CPU is, as text. Every sample is somewhere. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

profile-4999
{
	@[arg0 != 0 || arg1 != 0 ? "somewhere" : "nowhere"] = count();
	samples++;
}

END
{
	normalize(@, samples);
	printa("%s %@d\n", @);
}
