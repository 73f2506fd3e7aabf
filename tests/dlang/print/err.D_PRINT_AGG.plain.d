/* An aggregation is printed by printa(). */
BEGIN { @a = count(); print(@a); }
