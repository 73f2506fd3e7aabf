/* What is aggregated later in the text is not known yet. */
BEGIN { printa("%@d", @a); @a = count(); }
