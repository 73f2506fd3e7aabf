/*
 * Nothing of a kernel is as stable as this program wants.
 * @image: kernel arm64
 * @options: -x amin=Stable/Stable/Common
 */
BEGIN
{
	trace(`calls);
}
