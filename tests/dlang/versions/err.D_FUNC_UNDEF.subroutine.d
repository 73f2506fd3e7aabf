/* A subroutine of a later version is not known,
   @options: -x version=1.10 */
BEGIN
{
	trace(strtoll("1"));
}
