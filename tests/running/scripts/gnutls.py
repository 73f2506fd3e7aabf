"""GnuTLS: its own tests of ciphers, MACs, digests, keys and derivations, and data through each of its ciphers."""

from ctypes import Structure, byref, c_char_p, c_int, c_size_t, c_uint, c_void_p, create_string_buffer

from digests import LENGTHS, Told, fixed, library

gnutls = library("libgnutls.so.30")
gnutls.gnutls_cipher_get_name.restype = c_char_p
_ALL = 1


class Datum(Structure):
    _fields_ = [("data", c_char_p), ("size", c_uint)]


gnutls.gnutls_global_init()
for name in ("cipher", "mac", "digest", "pk", "hkdf", "pbkdf2", "tlsprf"):
    call = getattr(gnutls, f"gnutls_{name}_self_test", None)
    print("own tests", name, call(_ALL, 0) if call is not None else "none", flush=True)
for cipher in range(1, 60):
    if not gnutls.gnutls_cipher_get_name(cipher):
        continue
    told = Told(f"cipher {gnutls.gnutls_cipher_get_name(cipher).decode()}")
    size, vector = gnutls.gnutls_cipher_get_key_size(cipher), gnutls.gnutls_cipher_get_iv_size(cipher)
    for length in LENGTHS:
        handle, room = c_void_p(), create_string_buffer(length + 64)
        key, iv = Datum(fixed(size, b"key"), size), Datum(fixed(vector, b"iv"), vector)
        told.add(gnutls.gnutls_cipher_init(byref(handle), c_int(cipher), byref(key), byref(iv)))
        if handle.value:
            told.add(
                gnutls.gnutls_cipher_encrypt2(handle, fixed(length), c_size_t(length), room, c_size_t(length + 64))
            )
            told.add(room.raw)
            gnutls.gnutls_cipher_deinit(handle)
    told.tell()
