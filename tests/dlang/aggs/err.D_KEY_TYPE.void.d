/* Nothing is no key. */
BEGIN { @a[(void)1] = count(); }
