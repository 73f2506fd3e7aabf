/* override() wants a value. */
BEGIN { override(); }
