/* A name that came with this version is D's.
   @options: -x version=1.6.3 */
BEGIN
{
	cpu = 5;
}
