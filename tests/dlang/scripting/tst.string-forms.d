/* @arguments: 12 "a b" name "tab\\there"

   $$ makes text of any argument; an argument that is neither number nor name is text by itself, with its escapes. */
#pragma D option quiet
BEGIN { printf("[%s] [%s] [%s] [%s]\n", $$1, $2, $$3, $4); exit(0); }
