# An Ed25519 key that is always the same, as PKCS #8.
printf '%s\n' '-----BEGIN PRIVATE'' KEY-----' > key
{ printf '\060\056\002\001\000\060\005\006\003\053\145\160\004\042\004\040'; printf '01234567890123456789012345678901'; } | base64 >> key
printf '%s\n' '-----END PRIVATE'' KEY-----' >> key
chmod 600 key
