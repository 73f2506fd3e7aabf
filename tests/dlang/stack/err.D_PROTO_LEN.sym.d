/* sym() wants an address. */
BEGIN { sym(); }
