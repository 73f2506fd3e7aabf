# Text, numbers, sorting, packing, closures, evaluation, and modules with code of their own.
use strict; use warnings;
use List::Util qw(sum reduce shuffle); use Digest::MD5 qw(md5_hex); use Digest::SHA qw(sha512_hex);
use Storable qw(freeze thaw); use MIME::Base64; use Data::Dumper; use POSIX qw(floor fmod strtol); use Encode;
$Data::Dumper::Sortkeys = 1;
open my $file, '<', 'text' or die; my %count; my @lines = <$file>;
for (@lines) { $count{$_}++ for split; }
print join(' ', map { "$_=$count{$_}" } (sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count)[0 .. 20]), "\n";
my $text = join '', @lines;
(my $other = $text) =~ s/(\w+) (\w+)/\U$2\E \l$1/g; print md5_hex($other), "\n";
print scalar(() = $text =~ /(?<=a)\s+(t[^ ]*|f\w{2,4})(?!x)\b/g), "\n";
$other =~ tr/a-zA-Z/n-za-mN-ZA-M/; print sha512_hex($other), "\n";
print unpack('H*', pack('nNvVqdfA10w', 1, 2, 3, 4, -5, 1.5, 2.5, 'kinst', 300)), "\n";
print Dumper(thaw(freeze({ a => [1 .. 5], b => { c => undef } })));
print encode_base64(encode('UTF-16', "\x{263a} text")), sum(map { sqrt } 1 .. 1000), "\n";
my $fib; $fib = sub { my $n = shift; $n < 2 ? $n : $fib->($n - 1) + $fib->($n - 2) }; print $fib->(18), "\n";
for my $n (1 .. 30) { my $got = eval { die { code => $n } if $n % 3 == 0; $n ** 2 / 7 }; print $got // "died $@->{code}", ' '; }
printf "\n%.15g %e %s %x %b %o\n", 22 / 7, 1e100 / 3, 'x' x 5, 255, 10, 64;
print join(',', sort { $a <=> $b } map { $_ * 7919 % 1009 } 1 .. 300), "\n", floor(-3.5), fmod(17, 5), "\n";
eval 'sub made { return "made " . shift } print made(3), "\n"'; local $_ = 'abcabc'; print join('|', /(a)(b)?(c)/g), "\n";
