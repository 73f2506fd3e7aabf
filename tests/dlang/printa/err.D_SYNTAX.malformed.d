/* Malformed formats are refused here too. */
BEGIN { @a = count(); printa("%@", @a); }
