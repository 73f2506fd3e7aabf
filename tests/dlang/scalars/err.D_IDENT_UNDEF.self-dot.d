/* self and this go with an arrow. */
BEGIN
{
	self.x = 1;
}
