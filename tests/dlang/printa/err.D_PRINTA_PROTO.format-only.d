/* A format alone is not enough. */
BEGIN { @a = count(); printa("%@d"); }
