/* And the value is a number. */
BEGIN { @a = count(); printa("%@s", @a); }
