# Every module of perl's own that has code of its own is loaded, one after the other.
use XSLoader; use DynaLoader;
for my $library (sort map { glob "$_/auto/*/*.so $_/auto/*/*/*.so" } grep { m{/perl/5} } @INC) {
    my $handle = DynaLoader::dl_load_file($library, 0);
    print $library =~ s{.*/auto/}{}r, $handle ? " loaded\n" : " not: " . DynaLoader::dl_error() . "\n";
}
