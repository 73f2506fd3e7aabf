/* An empty format prints nothing. */
BEGIN { @a = count(); printa("", @a); }
