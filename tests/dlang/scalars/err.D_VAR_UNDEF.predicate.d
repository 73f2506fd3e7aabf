/* In a predicate, of one that nobody assigns. */
BEGIN
/this->x/
{
	this->y = 1;
}
