/* Only a name can be called. */
BEGIN { (1 + 2)(3); }
