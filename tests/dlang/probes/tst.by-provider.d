/* -P: all of a provider.
   @input: -P
*/
dtrace { printf("%s", probename); }
