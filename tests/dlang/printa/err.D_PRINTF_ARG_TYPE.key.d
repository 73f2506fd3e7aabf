/* Conversions fit their keys. */
BEGIN { @a["x"] = count(); printa("%d %@d", @a); }
