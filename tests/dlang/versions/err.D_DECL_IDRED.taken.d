/* What came with this version is not declared.
   @options: -x version=1.11 */
int json;
