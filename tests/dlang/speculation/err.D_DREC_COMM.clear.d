/* Actions on aggregations are recorded, too. */
BEGIN { @a = count(); } BEGIN { commit(1); clear(@a); }
