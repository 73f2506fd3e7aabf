/* And of the same kinds. */
BEGIN { a["x"] = 3; trace(a[1]); }
