/* @arguments: -- -5 +6 0x10 010 name

   An argument may have a sign and a base; a word is a name. */
#pragma D option quiet
BEGIN { name = 3; printf("%d %d %d %d %d\n", $1, $2, $3, $4, $5); exit(0); }
