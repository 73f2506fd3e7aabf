/* -i: the number of a probe.
   @input: -i
*/
2 { trace("end"); }
