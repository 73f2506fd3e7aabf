/* A second format is no aggregation. */
BEGIN { @a = count(); printa("%@d", "%@d"); }
