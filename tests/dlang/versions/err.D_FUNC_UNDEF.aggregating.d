/* And aggregating functions.
   @options: -x version=1.5 */
BEGIN
{
	@ = stddev(1);
}
