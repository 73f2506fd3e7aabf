/* @options: -x strsize=6 -x quiet -x aggsortrev

   Options of the command line, among them flags. */
BEGIN { s = "abcdefgh"; printf("%s\n", s); @["a"] = sum(1); @["b"] = sum(2); exit(0); }
END { printa("%s %@d\n", @); }
