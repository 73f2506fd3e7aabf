// Nothing is drawn here: the page is text, and can be read without a script. Light and dark are what all pages share.
