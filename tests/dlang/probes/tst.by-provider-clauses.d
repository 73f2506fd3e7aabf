/* Every clause of the text.
   @input: -P
*/
dtrace /id == 1/ { n = 5; }
dtrace /id == 2/ { trace((int)n); }
