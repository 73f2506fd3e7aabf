/* Names are not set. */
BEGIN { probename = "x"; }
